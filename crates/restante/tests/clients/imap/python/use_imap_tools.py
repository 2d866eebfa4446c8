"""Uses the server with imap_tools, also over XOAUTH2."""

import datetime
import threading

from environment import HOST, PASSWORD, PORT, SOURCES, TOKEN, USER, send
from imap_tools import AND, OR, H, MailBoxUnencrypted, MailMessage, MailMessageFlags
from imap_tools.errors import MailboxFolderCreateError, MailboxFolderSelectError

FOLDER = "Archiv/Entwürfe & mehr"
SUBJECTS = ["Invoice 1001", "Grüße aus Köln", "Parts", "Large", "Empty"]


def connect():
    return MailBoxUnencrypted(HOST, PORT, timeout=20)


def refused(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{call} {arguments} is not refused")


def subjects(*criteria, **options):
    return [message.subject for message in mailbox.fetch(*criteria, mark_seen=False, **options)]


with connect().login(USER, PASSWORD) as mailbox:
    # The messages.
    for bulk in [False, True, 2]:
        messages = list(mailbox.fetch(mark_seen=False, bulk=bulk))
        assert [message.subject for message in messages] == SUBJECTS
        assert [message.size_rfc822 for message in messages] == [len(source) for source in SOURCES]
        assert [message.obj.as_bytes() for message in messages] == [
            MailMessage.from_bytes(source).obj.as_bytes() for source in SOURCES
        ]
    assert not any(MailMessageFlags.SEEN in message.flags for message in messages)
    first, second, third, *_ = messages
    assert first.from_values.full == "Ann Lee <ann@x.org>" and first.to == ("ben@y.org", "carl@y.org")
    assert second.from_values.name == "Jörg" and second.text == "Zwei Stück Käse, bitte.\r\n"
    assert third.text.startswith("Café") and "<p>A page</p>" in third.html
    assert third.attachments[0].filename == "data.bin" and third.attachments[0].payload == bytes(range(32))
    assert subjects(headers_only=True, limit=2, reverse=True) == ["Empty", "Large"]

    # Searches.
    today = datetime.datetime.now(datetime.timezone.utc).date()
    assert subjects(AND(from_="ann", subject="part")) == ["Parts"]
    assert subjects(AND(text="Käse"), charset="utf8") == ["Grüße aus Köln"]
    assert subjects(OR(subject="Large", header=H("X-Test", "value"))) == ["Parts", "Large"]
    assert subjects(AND(date_gte=today - datetime.timedelta(days=1), seen=False)) == SUBJECTS
    assert subjects(AND(date_lt=today - datetime.timedelta(days=1))) == []
    assert subjects(AND(size_gt=100_000, all=True)) == ["Large"]
    assert mailbox.uids(sort="REVERSE SIZE")[0] == messages[3].uid
    assert mailbox.numbers_to_uids(["1", "5"]) == [messages[0].uid, messages[4].uid]

    # Flags.
    mailbox.flag([first.uid, second.uid], [MailMessageFlags.FLAGGED, "urgent"], True)
    mailbox.flag(first.uid, MailMessageFlags.FLAGGED, False)
    assert subjects(AND(flagged=True)) == ["Grüße aus Köln"]
    assert subjects(AND(keyword="urgent")) == SUBJECTS[:2]
    assert [message.subject for message in mailbox.fetch(AND(subject="Parts"))] == ["Parts"]
    assert subjects(AND(seen=True)) == ["Parts"]

    # Folders.
    for folder in ["Archiv", FOLDER]:
        mailbox.folder.create(folder)
        mailbox.folder.subscribe(folder, True)
    refused(MailboxFolderCreateError, mailbox.folder.create, FOLDER)
    refused(MailboxFolderSelectError, mailbox.folder.set, "Missing")
    mailbox.folder.set("INBOX")
    assert mailbox.folder.exists(FOLDER) and not mailbox.folder.exists("Missing")
    assert FOLDER in [folder.name for folder in mailbox.folder.list("Archiv")]
    assert FOLDER in [folder.name for folder in mailbox.folder.list(subscribed_only=True)]
    mailbox.folder.rename(FOLDER, "Archiv/2024")
    inbox = next(folder for folder in mailbox.folder.list() if folder.name == "INBOX")
    assert inbox.delim == "/", inbox
    assert mailbox.folder.status("INBOX", ["MESSAGES", "UNSEEN"]) == {"MESSAGES": 5, "UNSEEN": 4}

    # APPEND, COPY, MOVE, delete.
    date = datetime.datetime(2020, 12, 13, tzinfo=datetime.timezone.utc)
    mailbox.append(b"Subject: Appended\r\n\r\nHi\r\n", "Archiv/2024", date, [MailMessageFlags.DRAFT])
    mailbox.copy(first.uid, "Archiv/2024")
    mailbox.move([second.uid, third.uid], "Archiv/2024")
    mailbox.delete(messages[4].uid)
    assert subjects() == ["Invoice 1001", "Large"]
    mailbox.folder.set("Archiv/2024")
    assert subjects() == ["Appended", "Invoice 1001", "Grüße aus Köln", "Parts"]
    assert subjects(AND(draft=True)) == subjects(AND(date=date.date())) == ["Appended"]
    assert subjects(AND(flagged=True, keyword="urgent")) == ["Grüße aus Köln"]
    mailbox.delete(mailbox.uids())
    mailbox.folder.set("INBOX")
    for folder in ["Archiv/2024", "Archiv"]:
        mailbox.folder.subscribe(folder, False)
        mailbox.folder.delete(folder)

    # IDLE with a message that arrives.
    threading.Timer(0.5, send, ["Idle"]).start()
    responses = mailbox.idle.wait(timeout=20)
    assert b"* 3 EXISTS" in responses, responses
    assert subjects("UNSEEN SUBJECT Idle") == ["Idle"]

with connect().xoauth2(USER, TOKEN) as mailbox:
    assert len(mailbox.numbers()) == 3
with connect().login_utf8(USER, PASSWORD) as mailbox:
    assert len(mailbox.numbers()) == 3
