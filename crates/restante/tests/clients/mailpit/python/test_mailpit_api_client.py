"""The API with `mailpit-api-client`: lists, attachments, headers and deletion, and its helpers for unittest.

Two methods of this client work with no server of version 1.30, and are not used here: `get_message` needs a field that the
answer no longer has, and `put_messages` sends a form instead of JSON.
"""

import datetime
import os
import smtplib
from email.message import EmailMessage
from urllib.parse import urlsplit

import httpx
import pytest
from mailpit.client.api import API
from mailpit.testing.unittest import EMailTestCase

_ADDRESS = urlsplit(os.environ["MAILPIT_URL"])
# The client has no parameter for a password.
URL = f"http://{os.environ['MAILPIT_USERNAME']}:{os.environ['MAILPIT_PASSWORD']}@{_ADDRESS.netloc}"


def send(message_id: str) -> None:
    mail = EmailMessage()
    mail["From"] = "Ann <ann@example.test>"
    mail["To"] = "Bob <bob@example.test>, cid@example.test"
    mail["Delivered-To"] = "bob@example.test"
    mail["Date"] = "Mon, 16 Nov 2026 19:36:59 +0100"
    mail["Message-ID"] = f"<{message_id}>"
    mail["Subject"] = "Grüße"
    mail.set_content("Text\n")
    mail.add_attachment("the content", filename="notes.txt")
    host, port = os.environ["MAILPIT_SMTP"].rsplit(":", 1)
    with smtplib.SMTP(host, int(port)) as smtp:
        smtp.send_message(mail)


@pytest.fixture
def api():
    api = API(URL)
    api.delete_messages([])
    return api


def test_list(api):
    send("one@example.test")
    send("two@example.test")
    page = api.get_messages(limit=1, start=1)
    assert (page.total, page.unread, page.count, page.start) == (2, 2, 1, 1)
    [summary] = page.messages
    assert (summary.message_id, summary.read, summary.subject) == ("one@example.test", False, "Grüße")
    assert [(to.name, to.address) for to in summary.to] == [("Bob", "bob@example.test"), ("", "cid@example.test")]
    assert (summary.from_.name, summary.from_.address, summary.attachments) == ("Ann", "ann@example.test", 1)
    age = datetime.datetime.now(datetime.UTC) - summary.created
    assert abs(age) < datetime.timedelta(hours=1)


def test_attachment_and_headers(api):
    send("one@example.test")
    [summary] = api.get_messages().messages
    details = httpx.get(f"{URL}/api/v1/message/{summary.id}").json()
    [attachment] = details["Attachments"]
    assert api.get_message_attachment(summary.id, attachment["PartID"]).strip() == "the content"
    headers = api.get_message_headers(summary.id)
    assert headers.from_ == ["Ann <ann@example.test>"]
    assert headers.message_id == ["<one@example.test>"]
    assert headers.delivered_to == ["bob@example.test"]
    assert headers.date[0].isoformat() == "2026-11-16T19:36:59+01:00"


def test_deletion_of_all(api):
    send("one@example.test")
    # The client sends ids as a form, which Mailpit does not read: it deletes all messages.
    api.delete_messages(["absent"])
    assert api.last_response.text == "ok"
    assert api.get_messages().total == 0


class HelpersForUnittest(EMailTestCase):
    api_url = URL

    def test_received(self):
        send("received@example.test")
        self.assertMessageReceived("received@example.test")
        with self.assertRaises(self.failureException):
            self.assertMessageReceived("absent@example.test")
