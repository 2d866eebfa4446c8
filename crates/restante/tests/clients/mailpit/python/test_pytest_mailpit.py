"""The API with the fixtures of `pytest-mailpit`: inboxes, waiting, search, tags, checks and chaos."""

import smtplib
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest
from pytest_mailpit import ChaosTriggers, MailpitAPIError
from pytest_mailpit.client import MailpitClient
from pytest_mailpit.search import build_query

PICTURE = (Path(__file__).parent.parent / "picture.png").read_bytes()


@pytest.fixture
def send(mailpit_smtp):
    """Sends a mail with text, HTML, a picture in the HTML and an attachment."""

    def send(to, subject="Welcome", *, also_to=(), user=None):
        mail = EmailMessage()
        mail["From"] = "Shop <shop@example.test>"
        mail["To"] = to
        mail["Subject"] = subject
        mail["List-Unsubscribe"] = "<https://example.test/leave>, <mailto:leave@example.test>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.set_content("Your code is 471142.\n")
        mail.add_alternative('<p>Your code is <b>471142</b>. <a href="https://example.test/">Open</a> <img src="cid:p"></p>',
                             subtype="html")
        mail.get_payload()[1].add_related(PICTURE, "image", "png", cid="<p>", filename="inline.png", disposition="inline")
        mail.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="table.csv")
        with smtplib.SMTP(*mailpit_smtp) as smtp:
            if user:
                smtp.login(user, "anything")
            smtp.send_message(mail, to_addrs=[to, *also_to])

    return send


def test_message_of_an_inbox(send, mailpit_inbox):
    send(mailpit_inbox.address, also_to=["hidden@example.test"])
    message = mailpit_inbox.wait_for_message(subject="Welcome", sender="shop@example.test")
    assert (str(message.sender), message.return_path) == ("Shop <shop@example.test>", "shop@example.test")
    assert [to.address for to in message.to] == [mailpit_inbox.address]
    assert [bcc.address for bcc in message.bcc] == ["hidden@example.test"]
    assert message.code() == "471142"
    assert message.link() == "https://example.test/"
    assert message.unsubscribe_link(one_click=True) == "https://example.test/leave"
    attachment = message.attachment("table.csv", content_type="text/csv")
    assert (attachment.size, len(message.inline), message.inline[0].content_id) == (4, 1, "p")


def test_parts_headers_and_source(send, mailpit, mailpit_inbox):
    send(mailpit_inbox.address)
    message = mailpit_inbox.wait_for_message()
    assert mailpit.get_attachment(message.attachment("table.csv")) == b"a,b\n"
    assert mailpit.get_attachment(message.inline[0]) == PICTURE
    headers = mailpit.get_headers(message.id)
    assert headers["Subject"] == ["Welcome"]
    assert headers["List-Unsubscribe-Post"] == ["List-Unsubscribe=One-Click"]
    assert b"\r\nSubject: Welcome\r\n" in b"\r\n" + mailpit.get_raw(message.id)


def test_name_of_the_login(send, mailpit_inbox):
    send(mailpit_inbox.address, user="tim")
    assert mailpit_inbox.wait_for_message().username == "tim"


def test_inboxes_are_separate(send, mailpit_inbox_factory):
    one, other = mailpit_inbox_factory(), mailpit_inbox_factory()
    for subject in ["first", "second", "third"]:
        send(one.address, subject)
    assert [message.subject for message in one.wait_for_messages(3)] == ["first", "second", "third"]
    assert other.messages() == []
    other.assert_no_message(within=0)
    one.clear()
    assert one.messages() == []


def test_search_and_pages(send, mailpit, mailpit_inbox):
    for number in range(5):
        send(mailpit_inbox.address, f"page {number}")
    query = build_query(addressed=mailpit_inbox.address)
    page = mailpit.search(query, start=1, limit=2)
    assert (page.messages_count, page.messages_unread, page.start) == (5, 5, 1)
    assert [message.subject for message in page.messages] == ["page 3", "page 2"]
    assert len(mailpit.search_all(query, page_size=2)) == 5
    assert len(mailpit.search_all(f"{query} -subject:\"page 3\"")) == 4
    mailpit.delete_search(f"{query} subject:\"page 1\"")
    assert len(mailpit.search_all(query)) == 4


def test_messages_since_a_time(send, mailpit, mailpit_inbox):
    send(mailpit_inbox.address, "before")
    since = mailpit.server_time()
    send(mailpit_inbox.address, "after")
    message = mailpit.wait_for_message(recipient=mailpit_inbox.address, since=since)
    assert message.subject == "after"
    # The message has no Date header: its date is the time of arrival.
    assert abs(message.date - since) < timedelta(hours=1)


def test_read_marks_and_tags(send, mailpit, mailpit_inbox):
    send(mailpit_inbox.address)
    [summary] = mailpit_inbox.messages()
    assert (summary.read, summary.tags, summary.attachments) == (False, (), 1)
    assert summary.snippet.startswith("Your code is 471142.")
    mailpit.mark_read([summary.id])
    mailpit.set_tags([summary.id], ["Shop", "codes"])
    [summary] = mailpit_inbox.messages()
    assert (summary.read, summary.tags) == (True, ("codes", "Shop"))
    assert mailpit.wait_for_message(recipient=mailpit_inbox.address, tag="Shop").tags == ("codes", "Shop")
    mailpit.mark_read([summary.id], read=False)
    mailpit.set_tags([summary.id], [])
    [summary] = mailpit_inbox.messages()
    assert (summary.read, summary.tags) == (False, ())


def test_checks(send, mailpit_inbox):
    send(mailpit_inbox.address)
    message = mailpit_inbox.wait_for_message()
    check = message.check_html()
    assert check.nodes > 0 and 0 < check.supported <= 100 and set(check.platforms)
    assert "https://example.test/" in {link.url for link in message.check_links().links}


def test_chaos(send, mailpit, mailpit_inbox, mailpit_chaos):
    for reject, error in [
        (mailpit_chaos.reject_senders, smtplib.SMTPSenderRefused),
        (mailpit_chaos.reject_recipients, smtplib.SMTPRecipientsRefused),
    ]:
        reject(code=452)
        with pytest.raises(error) as refused:
            send(mailpit_inbox.address)
        assert "452" in str(refused.value)
        mailpit_chaos.reset()
    mailpit_chaos.reject_authentication(code=534)
    with pytest.raises(smtplib.SMTPAuthenticationError) as refused:
        send(mailpit_inbox.address, user="tim")
    assert refused.value.smtp_code == 534
    assert mailpit.set_chaos(ChaosTriggers()) == mailpit.chaos()
    send(mailpit_inbox.address)
    mailpit_inbox.wait_for_message()


def test_server(mailpit):
    info = mailpit.info()
    assert info.version.startswith("v") and info.messages == mailpit.messages().total
    assert mailpit.is_ready()


def test_errors(mailpit, mailpit_config):
    with pytest.raises(MailpitAPIError) as unknown:
        mailpit.get_message("1234567890")
    assert unknown.value.status_code == 404
    with MailpitClient(mailpit_config.url, username="nobody", password="wrong") as stranger:
        with pytest.raises(MailpitAPIError) as unauthorized:
            stranger.messages()
    assert unauthorized.value.status_code == 401
