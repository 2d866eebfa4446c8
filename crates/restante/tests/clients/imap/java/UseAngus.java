// Uses the server with Angus Mail, the implementation of Jakarta Mail. ../run.py sets the environment variables.

import jakarta.mail.FetchProfile;
import jakarta.mail.Flags;
import jakarta.mail.Folder;
import jakarta.mail.Message;
import jakarta.mail.MessagingException;
import jakarta.mail.Multipart;
import jakarta.mail.Part;
import jakarta.mail.Session;
import jakarta.mail.Transport;
import jakarta.mail.UIDFolder;
import jakarta.mail.event.MessageCountAdapter;
import jakarta.mail.event.MessageCountEvent;
import jakarta.mail.internet.InternetAddress;
import jakarta.mail.internet.MimeMessage;
import jakarta.mail.search.AndTerm;
import jakarta.mail.search.BodyTerm;
import jakarta.mail.search.ComparisonTerm;
import jakarta.mail.search.FlagTerm;
import jakarta.mail.search.FromStringTerm;
import jakarta.mail.search.HeaderTerm;
import jakarta.mail.search.NotTerm;
import jakarta.mail.search.OrTerm;
import jakarta.mail.search.ReceivedDateTerm;
import jakarta.mail.search.SearchTerm;
import jakarta.mail.search.SizeTerm;
import jakarta.mail.search.SubjectTerm;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.eclipse.angus.mail.imap.AppendUID;
import org.eclipse.angus.mail.imap.IMAPFolder;
import org.eclipse.angus.mail.imap.IMAPMessage;
import org.eclipse.angus.mail.imap.IMAPStore;
import org.eclipse.angus.mail.imap.SortTerm;

public class UseAngus {
    static final Map<String, String> ENVIRONMENT = System.getenv();
    static final String USER = ENVIRONMENT.get("IMAP_USER");

    static void check(boolean condition, Object... details) {
        if (!condition) {
            throw new AssertionError(Arrays.deepToString(details));
        }
    }

    static void equal(Object found, Object expected) {
        check(found.equals(expected), found, expected);
    }

    static Session session(Map<String, String> more) {
        Properties properties = new Properties();
        properties.put("mail.store.protocol", "imap");
        properties.put("mail.imap.host", ENVIRONMENT.get("IMAP_HOST"));
        properties.put("mail.imap.port", ENVIRONMENT.get("IMAP_PORT"));
        properties.put("mail.imap.timeout", "20000");
        properties.put("mail.smtp.host", ENVIRONMENT.get("IMAP_HOST"));
        properties.put("mail.smtp.port", ENVIRONMENT.get("SMTP_PORT"));
        properties.putAll(more);
        return Session.getInstance(properties);
    }

    static IMAPStore connect(Map<String, String> more, String password) throws MessagingException {
        IMAPStore store = (IMAPStore) session(more).getStore("imap");
        store.connect(USER, password);
        return store;
    }

    static byte[] source(Message message) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        message.writeTo(bytes);
        return bytes.toByteArray();
    }

    static List<String> subjects(Message[] messages) throws MessagingException {
        List<String> subjects = new ArrayList<>();
        for (Message message : messages) {
            subjects.add(message.getSubject());
        }
        return subjects;
    }

    static List<String> names(Folder[] folders) {
        return Arrays.stream(folders).map(Folder::getFullName).sorted().toList();
    }

    /** Starts IDLE, which ends after the first event. */
    /** Waits for changes until the value is true and the folder is used. */
    static Thread startIdle(IMAPFolder folder, AtomicBoolean isDone) {
        isDone.set(false);
        Thread thread = new Thread(() -> {
            try {
                do {
                    folder.idle(true);
                } while (!isDone.get());
            } catch (MessagingException error) {
                throw new AssertionError(error);
            }
        });
        thread.start();
        return thread;
    }

    static void stopIdle(IMAPFolder folder, Thread idle, AtomicBoolean isDone) throws Exception {
        isDone.set(true);
        folder.getMessageCount();
        idle.join();
    }

    public static void main(String[] arguments) throws Exception {
        List<byte[]> sources = new ArrayList<>();
        try (var files = Files.list(Path.of(ENVIRONMENT.get("IMAP_SOURCES")))) {
            for (Path file : files.sorted().toList()) {
                sources.add(Files.readAllBytes(file));
            }
        }
        IMAPStore store = connect(Map.of(), ENVIRONMENT.get("IMAP_PASSWORD"));
        equal(store.getPersonalNamespaces()[0].getFullName(), "");
        check(names(store.getDefaultFolder().list("*")).contains("INBOX"), "no INBOX");
        IMAPFolder inbox = (IMAPFolder) store.getFolder("INBOX");
        equal(inbox.getUnreadMessageCount(), 5);
        inbox.open(Folder.READ_WRITE);
        equal(inbox.getMessageCount(), 5);

        // The messages. The whole source, and the contents of parts in slices.
        Message[] messages = inbox.getMessages();
        FetchProfile profile = new FetchProfile();
        for (FetchProfile.Item item : List.of(FetchProfile.Item.ENVELOPE, FetchProfile.Item.CONTENT_INFO, FetchProfile.Item.FLAGS,
                FetchProfile.Item.SIZE, UIDFolder.FetchProfileItem.UID, IMAPFolder.FetchProfileItem.INTERNALDATE)) {
            profile.add(item);
        }
        profile.add("X-Test");
        inbox.fetch(messages, profile);
        List<String> all = List.of("Invoice 1001", "Grüße aus Köln", "Parts", "Large", "Empty");
        equal(subjects(messages), all);
        long[] uids = new long[5];
        for (int index = 0; index < 5; index++) {
            IMAPMessage message = (IMAPMessage) messages[index];
            uids[index] = inbox.getUID(message);
            message.setPeek(true);
            check(Arrays.equals(source(message), sources.get(index)), "source", index);
            equal(message.getSize(), sources.get(index).length);
            Instant received = message.getReceivedDate().toInstant();
            check(Duration.between(received, Instant.now()).abs().toDays() < 1, received);
            check(!message.isSet(Flags.Flag.SEEN), "seen", index);
        }
        equal(((InternetAddress) messages[1].getFrom()[0]).getPersonal(), "Jörg");
        equal(messages[0].getRecipients(Message.RecipientType.TO)[1].toString(), "carl@y.org");
        equal(messages[0].getSentDate(), Date.from(Instant.parse("2024-03-01T08:00:00Z")));
        equal(messages[2].getHeader("X-Test")[0], "a value");
        equal(((String) messages[1].getContent()).strip(), "Zwei Stück Käse, bitte.");
        check(((String) messages[3].getContent()).endsWith("Line 02499 of a text that is read in slices.\r\n"), "the large text");
        Multipart parts = (Multipart) messages[2].getContent();
        equal(parts.getCount(), 3);
        equal(((Multipart) parts.getBodyPart(0).getContent()).getBodyPart(0).getContent(), "Café");
        Part attachment = parts.getBodyPart(1);
        equal(attachment.getFileName(), "data.bin");
        try (InputStream content = attachment.getInputStream()) {
            byte[] bytes = content.readAllBytes();
            check(bytes.length == 32 && bytes[31] == 31, bytes);
        }
        Message nested = (Message) parts.getBodyPart(2).getContent();
        equal(nested.getSubject(), "Nested");
        equal(((Multipart) nested.getContent()).getBodyPart(1).getContent(), "<p>The nested page.</p>");

        // Searches.
        Date yesterday = Date.from(Instant.now().minus(Duration.ofDays(1)));
        Map<SearchTerm, List<String>> searches = Map.of(
            new FromStringTerm("Ann Lee"), List.of("Invoice 1001", "Parts"),
            new SubjectTerm("Grüße"), List.of("Grüße aus Köln"),
            new BodyTerm("first mail"), List.of("Invoice 1001"),
            new HeaderTerm("X-Test", "value"), List.of("Parts"),
            new ReceivedDateTerm(ComparisonTerm.GE, yesterday), all,
            new ReceivedDateTerm(ComparisonTerm.LT, yesterday), List.of(),
            new SizeTerm(ComparisonTerm.GT, 100_000), List.of("Large"),
            new NotTerm(new FromStringTerm("ann")), List.of("Grüße aus Köln"),
            new AndTerm(
                new FlagTerm(new Flags(Flags.Flag.FLAGGED), false),
                new OrTerm(new SubjectTerm("empty"), new BodyTerm("nested"))),
            List.of("Parts", "Empty"));
        for (var search : searches.entrySet()) {
            equal(subjects(inbox.search(search.getKey())), search.getValue());
        }
        if (store.hasCapability("SORT")) {
            equal(subjects(inbox.getSortedMessages(new SortTerm[] {SortTerm.REVERSE, SortTerm.SIZE})).get(0), "Large");
        }

        // Flags and keywords.
        inbox.setFlags(messages, new Flags(Flags.Flag.SEEN), false);
        equal(inbox.getUnreadMessageCount(), 5);
        Flags flags = new Flags(Flags.Flag.FLAGGED);
        flags.add("$Forwarded");
        messages[0].setFlags(flags, true);
        messages[1].setFlag(Flags.Flag.ANSWERED, true);
        equal(subjects(inbox.search(new FlagTerm(flags, true))), List.of("Invoice 1001"));

        // Folders.
        Folder folder = store.getFolder("Archiv/Entwürfe & mehr");
        check(folder.create(Folder.HOLDS_MESSAGES), "CREATE");
        check(folder.exists() && !store.getFolder("Missing").exists(), "LIST");
        folder.setSubscribed(true);
        check(names(store.getDefaultFolder().listSubscribed("*")).contains(folder.getFullName()), "LSUB");
        folder.setSubscribed(false);
        IMAPFolder archive = (IMAPFolder) store.getFolder("Archiv/2024");
        check(folder.renameTo(archive), "RENAME");
        equal(names(store.getFolder("Archiv").list("%")), List.of("Archiv/2024"));

        // APPEND, COPY, MOVE, EXPUNGE.
        byte[] appended = "Subject: Appended\r\n\r\n\u00e4 \u00ff\r\n".getBytes(StandardCharsets.ISO_8859_1);
        MimeMessage draft = new MimeMessage(session(Map.of()), new ByteArrayInputStream(appended));
        draft.setFlag(Flags.Flag.DRAFT, true);
        AppendUID appendedUid = archive.appendUIDMessages(new Message[] {draft})[0];
        inbox.copyMessages(new Message[] {messages[0], messages[1]}, archive);
        inbox.moveMessages(new Message[] {messages[2]}, archive);
        messages[4].setFlag(Flags.Flag.DELETED, true);
        inbox.expunge();
        equal(subjects(inbox.getMessages()), List.of("Invoice 1001", "Grüße aus Köln", "Large"));
        archive.open(Folder.READ_ONLY);
        Message[] copies = archive.getMessages();
        equal(archive.getUID(copies[0]), appendedUid.uid);
        check(copies[0].isSet(Flags.Flag.DRAFT) && copies[1].getFlags().contains(flags), "flags");
        check(copies[2].isSet(Flags.Flag.ANSWERED), "flags");
        for (int index = 0; index < 4; index++) {
            check(Arrays.equals(source(copies[index]), index == 0 ? appended : sources.get(index - 1)), "copy", index);
        }
        archive.close(false);
        if (store.hasCapability("QUOTA")) {
            store.getQuota("INBOX");
        }

        // IDLE with a message that arrives, and with one that another session deletes.
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        AtomicBoolean isDone = new AtomicBoolean();
        inbox.addMessageCountListener(new MessageCountAdapter() {
            @Override
            public void messagesAdded(MessageCountEvent event) {
                events.add("added " + event.getMessages().length);
            }

            @Override
            public void messagesRemoved(MessageCountEvent event) {
                events.add("removed " + event.getMessages()[0].getMessageNumber());
            }
        });
        Thread idle = startIdle(inbox, isDone);
        MimeMessage mail = new MimeMessage(session(Map.of()));
        mail.setFrom("ann@x.org");
        mail.setRecipients(Message.RecipientType.TO, USER + "@example.org");
        mail.setSubject("Idle");
        mail.setText("Hi");
        Transport.send(mail);
        equal(String.valueOf(events.poll(20, TimeUnit.SECONDS)), "added 1");
        stopIdle(inbox, idle, isDone);
        idle = startIdle(inbox, isDone);
        try (IMAPStore other = connect(Map.of(), ENVIRONMENT.get("IMAP_PASSWORD"))) {
            Folder same = other.getFolder("INBOX");
            same.open(Folder.READ_WRITE);
            same.getMessage(1).setFlag(Flags.Flag.DELETED, true);
            same.close(true);
        }
        equal(String.valueOf(events.poll(20, TimeUnit.SECONDS)), "removed 1");
        stopIdle(inbox, idle, isDone);
        // Removed messages keep their numbers until this call.
        inbox.expunge();
        equal(subjects(inbox.getMessages()), List.of("Grüße aus Köln", "Large", "Idle"));
        inbox.close(false);
        check(archive.delete(false), "DELETE");
        if (store.getFolder("Archiv").exists()) {
            check(store.getFolder("Archiv").delete(true), "DELETE of the parent");
        }
        store.close();

        // Other logins.
        for (String mechanism : List.of("PLAIN", "LOGIN", "XOAUTH2")) {
            String password = ENVIRONMENT.get(mechanism.equals("XOAUTH2") ? "IMAP_TOKEN" : "IMAP_PASSWORD");
            store = connect(Map.of("mail.imap.auth.mechanisms", mechanism), password);
            Folder again = store.getFolder("INBOX");
            again.open(Folder.READ_ONLY);
            equal(again.getMessageCount(), 3);
            store.close();
        }
    }
}
