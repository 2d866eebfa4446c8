import io.quarkiverse.mailpit.test.ChaosConfig;
import io.quarkiverse.mailpit.test.Mailbox;
import io.quarkiverse.mailpit.test.invoker.ApiClient;
import io.quarkiverse.mailpit.test.invoker.ApiException;
import io.quarkiverse.mailpit.test.model.*;
import io.quarkiverse.mailpit.test.rest.*;
import jakarta.mail.MessagingException;
import jakarta.mail.Session;
import jakarta.mail.Transport;
import jakarta.mail.internet.InternetAddress;
import jakarta.mail.internet.MimeMessage;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.TimeZone;
import java.util.stream.Collectors;

/**
 * The API with the mailbox of Quarkus and its generated client, which has a Java type for every field. Mail is sent by
 * Jakarta Mail. Started as a source file; exits with an exception if an assertion fails.
 */
class QuarkusMailbox {
    private static final String[] SMTP = required("MAILPIT_SMTP").split(":");

    private final Mailbox mailbox = new Mailbox();
    private final ApiClient client = mailbox.getApiClient();
    private final MessagesApi messages;
    private final MessageApi message;
    private final TagsApi tags;
    private final TestingApi testing;
    private final OtherApi other;
    private final ApplicationApi application;

    public static void main(String[] arguments) throws Exception {
        QuarkusMailbox test = new QuarkusMailbox();
        test.findsWhatAnApplicationSends();
        test.readsEveryFieldOfAMessage();
        test.listsAndSearches();
        test.setsReadMarksAndTags();
        test.checksHtmlAndLinks();
        test.describesTheServer();
        test.rejectsMailByChaos();
        test.reportsErrors();
        System.out.println("passed");
    }

    private QuarkusMailbox() {
        String login = required("MAILPIT_USERNAME") + ":" + required("MAILPIT_PASSWORD");
        String header = "Basic " + Base64.getEncoder().encodeToString(login.getBytes(StandardCharsets.UTF_8));
        client.setRequestInterceptor(request -> request.header("Authorization", header));
        client.setReadTimeout(Duration.ofMinutes(2));
        messages = mailbox.getMessagesApi();
        message = mailbox.getMessageApi();
        tags = new TagsApi(client);
        testing = mailbox.getTestingApi();
        other = new OtherApi(client);
        application = mailbox.getApplicationApi();
        mailbox.clear();
    }

    private void findsWhatAnApplicationSends() throws Exception {
        send("Ahoy", "A simple mail.\r\n");
        Message found = mailbox.findFirst("ann@example.test");
        equal("ann@example.test", found.getFrom().getAddress());
        equal("bob@example.test", found.getTo().get(0).getAddress());
        equal("Ahoy", found.getSubject());
        equal("A simple mail.\r\n", found.getText());
        equal(null, mailbox.findFirst("absent@example.test"));
        for (int number = 0; number < 60; number++) {
            send("Number " + number, "Text\r\n");
        }
        equal(60, mailbox.find("subject:\"Number\"", 0, 100).size());
        equal(10, mailbox.find("subject:\"Number\"", 50, 100).size());
        equal(60, mailbox.find("subject:number after:2020-01-01", 0, 100, TimeZone.getTimeZone("Europe/Berlin")).size());
        mailbox.delete(found.getID());
        equal(null, mailbox.findFirst("Ahoy"));
        mailbox.clear();
        equal(0, messages.getMessagesParams(0L, 50L).getTotal());
    }

    private void readsEveryFieldOfAMessage() throws Exception {
        byte[] picture = java.nio.file.Files.readAllBytes(java.nio.file.Path.of(required("MAILPIT_PICTURE")));
        SendMessageParamsRequest request = new SendMessageParamsRequest()
            .from(new SendMessageParamsRequestFrom().email("ann@example.test").name("Ann"))
            .addToItem(new SendMessageParamsRequestToInner().email("bob@example.test").name("Bob"))
            .addCcItem(new SendMessageParamsRequestCcInner().email("cid@example.test").name("Cid"))
            .addBccItem("dan@example.test")
            .addReplyToItem(new SendMessageParamsRequestReplyToInner().email("noreply@example.test").name(""))
            .subject("All fields").text("Text").HTML("<p style=\"display:grid\">HTML <a href=\"https://example.test\">x</a></p>")
            .putHeadersItem("List-Unsubscribe", "<https://example.test/leave>")
            .addTagsItem("sent")
            .addAttachmentsItem(new SendMessageParamsRequestAttachmentsInner().filename("picture.png")
                .content(Base64.getEncoder().encodeToString(picture)));
        String id = message.sendMessageParams(request).getID();
        Message read = message.getMessageParams(id);
        equal(id, read.getID());
        equal("Cid", read.getCc().get(0).getName());
        equal("dan@example.test", read.getBcc().get(0).getAddress());
        equal("noreply@example.test", read.getReplyTo().get(0).getAddress());
        equal("ann@example.test", read.getReturnPath());
        equal(List.of("sent"), read.getTags());
        equal(required("MAILPIT_USERNAME"), read.getUsername());
        equal(List.of("https://example.test/leave"), read.getListUnsubscribe().getLinks());
        equal(List.of(), read.getInline());
        isTrue(Duration.between(read.getDate(), OffsetDateTime.now()).abs().toHours() < 1);
        isTrue(read.getSize() > picture.length && !read.getMessageID().isEmpty());
        Attachment attachment = read.getAttachments().get(0);
        equal("picture.png image/png " + picture.length,
            attachment.getFileName() + " " + attachment.getContentType() + " " + attachment.getSize());
        equal(List.of("All fields"), message.getHeadersParams(id).get("Subject"));
    }

    private void listsAndSearches() throws Exception {
        MessagesSummary all = messages.getMessagesParams(0L, 50L);
        equal("1 0 0 1", all.getTotal() + " " + all.getUnread() + " " + all.getStart() + " " + all.getMessagesCount());
        equal(List.of("sent"), all.getTags());
        MessageSummary summary = all.getMessages().get(0);
        equal("All fields", summary.getSubject());
        equal(1L, summary.getAttachments());
        isTrue(summary.getRead() && !summary.getSnippet().isEmpty());
        isTrue(Duration.between(summary.getCreated(), OffsetDateTime.now()).abs().toHours() < 1);
        equal(1, messages.searchParams("tag:sent has:attachment", "0", "10", null).getMessagesCount());
        equal(0, messages.searchParams("is:unread", null, null, null).getMessagesCount());
    }

    private void setsReadMarksAndTags() throws Exception {
        String id = messages.getMessagesParams(0L, 1L).getMessages().get(0).getID();
        equal("ok", messages.setReadStatusParams(null, new SetReadStatusParamsRequest().addIdsItem(id).read(false)));
        equal(1, messages.getMessagesParams(0L, 1L).getUnread());
        equal("ok", tags.setTagsParams(new SetTagsParamsRequest().addIdsItem(id).tags(List.of("b", "a"))));
        equal(List.of("a", "b"), tags.getAllTags());
        equal("ok", tags.renameTagParams("a", new RenameTagParamsRequest().name("c d")));
        equal("ok", tags.deleteTagParams("b"));
        equal(List.of("c d"), message.getMessageParams(id).getTags());
    }

    private void checksHtmlAndLinks() throws Exception {
        String id = messages.getMessagesParams(0L, 1L).getMessages().get(0).getID();
        HTMLCheckResponse check = other.hTMLCheckParams(id);
        isTrue(check.getTotal().getTests() > 0 && check.getTotal().getSupported() > 0 && !check.getPlatforms().isEmpty());
        List<String> slugs = check.getWarnings().stream().map(HTMLCheckWarning::getSlug).collect(Collectors.toList());
        isTrue(slugs.contains("css-display-grid"));
        isTrue(check.getWarnings().stream().allMatch(warning -> warning.getScore().getFound() > 0));
        LinkCheckResponse links = other.linkCheckParams(id, "false");
        equal("https://example.test", links.getLinks().get(0).getURL());
    }

    private void describesTheServer() throws Exception {
        AppInformation info = mailbox.getApplicationInfo();
        equal("1 {c d=1}", info.getMessages() + " " + info.getTags());
        isTrue(info.getRuntimeStats().getSmTPAccepted() >= 61 && info.getRuntimeStats().getMessagesDeleted() >= 61);
        isTrue(application.webUIConfigurationResponse().getChaosEnabled());
    }

    private void rejectsMailByChaos() throws Exception {
        mailbox.setChaos(ChaosConfig.builder().sender(451L, 100L).build());
        isTrue(refusal().contains("451 Chaos sender error"));
        mailbox.setChaos(ChaosConfig.builder().recipient(550L, 100L).build());
        isTrue(refusal().contains("550 Chaos recipient error"));
        equal(100L, testing.getChaos().getRecipient().getProbability());
        mailbox.disableChaos();
        send("Accepted", "Text\r\n");
    }

    private void reportsErrors() throws Exception {
        equal(404, status(() -> message.getMessageParams("1234567890")));
        equal(400, status(() -> message.sendMessageParams(new SendMessageParamsRequest().subject("No sender"))));
        isTrue(status(() -> other.spamAssassinCheckParams("latest")) >= 400);
        mailbox.clear();
        equal(404, status(() -> message.getMessageParams("latest")));
    }

    private interface Request {
        void run() throws ApiException;
    }

    /** Returns the status of a request that fails. */
    private static int status(Request request) {
        try {
            request.run();
        } catch (ApiException error) {
            return error.getCode();
        }
        throw new AssertionError("the request did not fail");
    }

    private static void send(String subject, String text) throws MessagingException {
        Properties properties = new Properties();
        properties.put("mail.smtp.host", SMTP[0]);
        properties.put("mail.smtp.port", SMTP[1]);
        MimeMessage mail = new MimeMessage(Session.getInstance(properties));
        mail.setFrom(new InternetAddress("ann@example.test"));
        mail.setRecipients(jakarta.mail.Message.RecipientType.TO, "bob@example.test");
        mail.setSubject(subject);
        mail.setText(text);
        Transport.send(mail);
    }

    /** Sends a mail that is refused, and returns the texts of the errors. */
    private static String refusal() {
        try {
            send("Refused", "Text\r\n");
        } catch (MessagingException error) {
            StringBuilder texts = new StringBuilder();
            for (Exception cause = error; cause != null;
                cause = cause instanceof MessagingException nested ? nested.getNextException() : null) {
                texts.append(cause.getMessage()).append('\n');
            }
            return texts.toString();
        }
        throw new AssertionError("the mail was not refused");
    }

    private static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    private static void isTrue(boolean condition) {
        if (!condition) {
            throw new AssertionError("the condition is false");
        }
    }

    private static String required(String name) {
        return Objects.requireNonNull(System.getenv(name), "the variable " + name + " is not set");
    }
}
