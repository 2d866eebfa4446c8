"""Tests the client against a real server, with the fixtures of the package."""

from __future__ import annotations

import http.server
import json
import re
import smtplib
import threading
from email.message import EmailMessage

import pytest

from restante import NotFound, Refused, Restante, RestanteError, UnexpectedMail, WaitTimeout
from restante.message import parse_message


def message(to: str, subject: str = "Welcome", text: str = "Your code is 482913.", html: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Shop <shop@example.com>"
    mail["To"] = to
    mail["Subject"] = subject
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    return mail


def send(smtp: tuple[str, int], *mails: EmailMessage) -> None:
    with smtplib.SMTP(*smtp) as session:
        for mail in mails:
            session.send_message(mail)


def test_runs_do_not_see_each_others_mail(restante, restante_smtp):
    with restante.lease("10m") as first, restante.lease("10m") as second:
        assert first.project != second.project and first.smtp == restante_smtp
        send(restante_smtp, message(first.address("ann"), "to the domain"), message(second.address("ann"), "to the other domain"))
        with smtplib.SMTP(*first.smtp) as session:
            session.login(first.username, first.password)
            session.send_message(message("ann@example.org", "with the login"))
        found = first.mailbox("ann").wait_for(2)
        assert [mail.subject for mail in found] == ["to the domain", "with the login"]
        assert [mail.subject for mail in second.messages()] == ["to the other domain"]
        first.expect_none(match="subject:other", timeout=0.2)
        assert Restante(restante.url, token=first.token).mailbox("ann").last() == found[-1].id
    assert list(restante.mailboxes(prefix="run-")) == []
    with pytest.raises(RestanteError, match="expires-in"):
        restante.lease("25h")


def test_run_has_no_path_of_another_project(restante):
    with Restante(f"{restante.url}/p/shop/").lease() as run:
        assert run.url == restante.url
        assert list(run.messages()) == []


def test_wait_returns_when_a_message_arrives(mailbox, restante_smtp):
    later = threading.Timer(0.3, send, [restante_smtp, message(mailbox.address, "Grüße aus Köln")])
    later.start()
    mail = mailbox.wait(match="subject:grusse or subject:gruße", timeout=20)
    later.join()
    assert mail.subject == "Grüße aus Köln"
    assert mail.sender == "Shop <shop@example.com>"
    assert mail.to == [f"<{mailbox.address}>"]
    assert mail.text.strip() == "Your code is 482913."
    assert mailbox.address.startswith(mail.mailbox) and not mail.seen and mail.size == len(mail.source())


def test_code_and_link(mailbox, restante_smtp):
    html = '<p>Your code: <b>73 91 04</b></p><a href="https://shop.example/verify?t=x">Confirm your address</a>'
    send(restante_smtp, message(mailbox.address, "Confirm", "Your code: 739104", html))
    mail = mailbox.wait()
    assert mail.code() == "739104"
    assert mail.link("confirm") == "https://shop.example/verify?t=x"
    assert mail.link("VERIFY?t=") == "https://shop.example/verify?t=x"
    assert mail.link(re.compile("t=.$")) == "https://shop.example/verify?t=x"
    with pytest.raises(NotFound, match="none of the"):
        mail.link("nowhere")


def test_code_of_the_header(mailbox, restante_smtp):
    mail = message(mailbox.address, "Sign in", "Your code is 482913.")
    mail["OTP-Token"] = '"731946"; origin="https://shop.example"'
    send(restante_smtp, mail)
    first, second = mailbox.wait().codes()
    assert (first.code, first.where, first.origin) == ("731946", "header", "https://shop.example")
    assert (second.code, second.where, second.origin) == ("482913", "text", None)


def test_html_check(mailbox, restante_smtp):
    html = '<p>News</p>\n<div style="display:grid">Grid</div>'
    send(restante_smtp, message(mailbox.address, "News", "News", html))
    check = mailbox.wait().html_check()
    assert 0 < check.score.supported < 100
    grid = next(one for one in check.features if one.slug == "css-display-grid")
    assert (grid.count, grid.lines, grid.url) == (1, [2], "https://www.caniemail.com/features/css-display-grid/")
    assert any(one["family"] == "outlook" and one["support"] == "no" for one in grid.clients)


def test_html_check_raises_not_found_without_html(mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address, "Text", "Only text."))
    mail = mailbox.wait()
    with pytest.raises(NotFound, match="no HTML"):
        mail.html_check()


def test_code_raises_not_found_without_a_code(mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address, "News", "Nothing to see here."))
    with pytest.raises(NotFound, match="no code"):
        mailbox.wait().code()


def test_wait_for_several_and_after_one(mailbox, restante_smtp):
    send(restante_smtp, *[message(mailbox.address, f"number {n}") for n in range(4)])
    messages = mailbox.wait_for(4)
    assert [one.subject for one in messages] == [f"number {n}" for n in range(4)]
    assert mailbox.wait(after=messages[1]).subject == "number 2"
    assert mailbox.last() == messages[3].id
    assert [one.id for one in mailbox.messages()] == [one.id for one in messages]


def test_wait_timeout_lists_what_arrived(mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address, "Something else"))
    with pytest.raises(WaitTimeout, match="Something else") as failure:
        mailbox.wait(match="subject:welcome", timeout=0.2)
    assert failure.value.messages == [] and isinstance(failure.value, TimeoutError)
    with pytest.raises(WaitTimeout) as failure:
        mailbox.wait_for(2, timeout=0.2)
    assert [one.subject for one in failure.value.messages] == ["Something else"]


def test_expect_none(mailbox, restante_smtp):
    mailbox.expect_none(timeout=0.2)
    send(restante_smtp, message(mailbox.address))
    with pytest.raises(UnexpectedMail, match="Welcome") as failure:
        mailbox.expect_none(timeout=20)
    assert [one.subject for one in failure.value.messages] == ["Welcome"]


def test_mark_delete_and_purge(mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address), message(mailbox.address))
    first, second = mailbox.messages()
    first.mark_seen()
    assert [one.seen for one in mailbox.messages()] == [True, False]
    first.delete()
    with pytest.raises(NotFound):
        first.delete()
    assert [one.id for one in mailbox.messages()] == [second.id]
    mailbox.purge()
    assert mailbox.messages() == []
    with pytest.raises(NotFound):
        mailbox.message()


def test_messages_of_all_mailboxes(restante, mailbox, restante_smtp):
    other = f"other-{mailbox.address}"
    before = restante.last()
    send(restante_smtp, message(f"{mailbox.address}, {other}", "To both"), message(mailbox.address, "To one"))
    one, both = restante.messages(query="subject:to", after=before)
    assert (both.subject, both.sender, both.seen, both.tags) == ("To both", "Shop <shop@example.com>", False, [])
    assert sorted(both.recipients) == sorted([mailbox.address, other])
    assert len(both.mailboxes) == 2 and one.mailboxes == [mailbox.message().mailbox]
    assert both.to == [f"<{mailbox.address}>", f"<{other}>"] and both.cc == []
    assert both.snippet == "Your code is 482913." and both.attachment_count == 0
    assert one.received >= both.received and one.received.tzinfo is not None
    assert [mail.id for mail in restante.messages(limit=1)] == [one.id]
    assert [mail.id for mail in restante.messages(before=one, limit=1)] == [both.id]
    with pytest.raises(RestanteError) as failure:
        list(restante.messages(query='"never ends'))
    assert failure.value.status == 400


def test_content_of_a_message_of_all_mailboxes(restante, mailbox, restante_smtp):
    before = restante.last()
    mail = message(mailbox.address, "Confirm", html='<a href="https://shop.example/v?t=1">Confirm</a>')
    mail.add_attachment(b"a;b\r\n", maintype="text", subtype="csv", filename="t\u00e4ble.csv")
    send(restante_smtp, mail)
    found = restante.wait(match="subject:confirm", after=before)
    assert found.text.strip() == "Your code is 482913." and "shop.example" in found.html
    assert found.header["Subject"] == ["Confirm"]
    assert (found.code(), found.link("confirm")) == ("482913", "https://shop.example/v?t=1")
    (file,) = found.attachments
    assert found.attachment_count == 1 and file.filename == "t\u00e4ble.csv" and found.content(file) == b"a;b\r\n"
    assert len(found.source()) == found.size and found.transcript()["lines"]

    whole = restante.message(found.id)
    assert (whole.id, whole.envelope_sender, whole.client.login) == (found.id, "shop@example.com", None)
    assert whole.client.ip and whole.client.helo
    (copy,) = whole.copies
    assert [copy.mailbox] == whole.mailboxes and mailbox.message(copy.id).subject == "Confirm"
    assert not copy.seen and copy.tags == [] and copy.recipients == [mailbox.address]
    with pytest.raises(NotFound):
        restante.message("7")


def test_wait_for_messages_of_all_mailboxes(restante, mailbox, restante_smtp):
    before = restante.last()
    send(restante_smtp, *[message(f"{n}-{mailbox.address}", f"number {n}") for n in range(3)])
    messages = restante.wait_for(3, match="subject:number", after=before)
    assert [one.subject for one in messages] == [f"number {n}" for n in range(3)]
    assert restante.wait(after=messages[1]).subject == "number 2"
    with pytest.raises(WaitTimeout, match="number 2") as failure:
        restante.wait_for(2, match='subject:"number 2"', after=before, timeout=0.2)
    assert [one.subject for one in failure.value.messages] == ["number 2"]
    restante.expect_none(after=messages[2], timeout=0.2)
    with pytest.raises(UnexpectedMail, match="number 2"):
        restante.expect_none(after=messages[1], timeout=20)


def test_change_and_delete_messages_of_all_mailboxes(restante, mailbox, restante_smtp):
    before = restante.last()
    send(restante_smtp, *[message(f"{mailbox.address}, other-{mailbox.address}", f"number {n}") for n in range(3)])
    first, second, third = restante.wait_for(3, after=before)
    tag = f"run {first.id}"
    first.mark_seen()
    first.set_tags(tag, "checked")
    second.set_tags(tag)
    first = restante.message(first.id)
    assert first.seen and first.tags == [tag, "checked"] and [copy.tags for copy in first.copies] == [first.tags] * 2
    assert [mail.id for mail in restante.messages(tag=tag)] == [second.id, first.id]
    assert [mail.id for mail in restante.messages(tag=[tag.upper(), "checked"])] == [first.id]
    second.set_tags()
    assert restante.message(second.id).tags == []
    with pytest.raises(RestanteError, match="tag") as failure:
        first.set_tags("a,b")
    assert failure.value.status == 422

    assert restante.delete_messages("subject:number", tag=tag) == 1
    assert restante.delete_messages(tag=tag) == 0
    second.delete()
    with pytest.raises(NotFound):
        second.delete()
    assert [mail.id for mail in restante.messages(after=before)] == [third.id]
    with pytest.raises(RestanteError) as failure:
        restante.delete_messages()
    assert failure.value.status == 400


def test_mark_and_delete_messages_of_a_mailbox(restante, mailbox, restante_smtp):
    other = f"other-{mailbox.address}"
    send(restante_smtp, *[message(f"{mailbox.address}, {other}", f"number {n}") for n in range(3)])
    first, second, third = mailbox.wait_for(3)
    name = mailbox.message().mailbox
    listed = list(restante.messages(mailbox=mailbox.address))
    assert [one.id for one in listed] == [third.id, second.id, first.id]
    assert [(one.mailboxes, one.recipients) for one in listed] == [([name], [mailbox.address])] * 3
    assert [one.id for one in restante.messages(mailbox=name, query='"number 1"')] == [second.id]
    assert restante.messages(mailbox=name, limit=1).__next__().text.strip() == "Your code is 482913."

    assert restante.mark_messages(mailbox=name) == 3
    assert [one.seen for one in mailbox.messages()] == [True] * 3
    assert not any(one.seen for one in restante.mailbox(other).messages())
    assert restante.mark_messages('"number 1"', mailbox=name, seen=False) == 1
    assert [one.seen for one in mailbox.messages()] == [True, False, True]
    usage = restante.usage()
    assert usage["copies"] >= 6 and usage["messages"] >= 3 and usage["mailboxes"] >= 2 and usage["bytes"] > 0
    assert restante.delete_messages('"number 1"', mailbox=name) == 1
    assert restante.delete_messages(mailbox=name) == 2
    assert mailbox.messages() == [] and len(restante.mailbox(other).messages()) == 3


def test_entries_of_a_mailbox_are_its_copies(restante, mailbox, restante_smtp):
    other = restante.mailbox(f"other-{mailbox.address}")
    send(restante_smtp, *[message(f"{mailbox.address}, other-{mailbox.address}", f"number {n}") for n in range(2)])
    mailbox.wait_for(2)
    for listed, rest in ((mailbox, other), (other, mailbox)):
        name = listed.message().mailbox
        entry = next(restante.messages(mailbox=name, limit=1))
        assert (entry.mailbox, entry.mailboxes) == (name, [name])
        assert entry.text.strip() == "Your code is 482913."
        assert f"for <{name}>".encode() in entry.source()
        assert entry._fetched()["mailbox"] == name
        entry.mark_seen()
        assert [one.seen for one in listed.messages()][-1] and not any(one.seen for one in rest.messages())
        entry.mark_seen(False)
        assert not any(one.seen for one in listed.messages())
        before = len(rest.messages())
        entry.delete()
        with pytest.raises(NotFound):
            entry.delete()
        assert len(rest.messages()) == before
    assert next(restante.messages(limit=1)).mailbox is None


def test_copies_of_an_older_server_have_no_recipients():
    record = {
        **{name: [] for name in ("to", "cc", "recipients", "mailboxes", "tags")},
        **{name: "" for name in ("id", "from", "subject", "snippet", "sender")},
        "size": 0, "attachments": 0, "seen": False, "received": "2026-11-14T23:42:50.123456+00:00",
        "client": {"ip": None, "helo": "", "login": None},
        "copies": [{"mailbox": "ann", "id": "1", "number": 1, "seen": False, "tags": []}],
    }
    assert parse_message(None, record).copies[0].recipients == []


def test_search(restante, mailbox, restante_smtp):
    send(restante_smtp, *[message(mailbox.address, f"Invoice {n}", "thank you") for n in range(3)])
    assert [one.subject for one in mailbox.search("invoice", limit=2)] == ["Invoice 2", "Invoice 1"]
    found = restante.search(f"invoice -subject:1 mailbox:{mailbox.message().mailbox}")
    assert [one.subject for one in found] == ["Invoice 2", "Invoice 0"]
    with pytest.raises(RestanteError) as failure:
        list(restante.search('"never ends'))
    assert failure.value.status == 400


def test_inject(mailbox):
    mail = mailbox.inject(
        sender="Änn <ann@example.org>",
        subject="Grüße",
        text="text",
        html="<p>html",
        headers={"X-Test": "1"},
        attachments={"täble.csv": b"a;b\r\n"},
    )
    assert (mail.sender, mail.subject, mail.text.strip(), mail.html.strip()) == (
        "Änn <ann@example.org>",
        "Grüße",
        "text",
        "<p>html",
    )
    assert mail.header["X-Test"] == ["1"]
    (file,) = mail.attachments
    assert file.filename == "täble.csv" and mail.content(file) == b"a;b\r\n"
    raw = b"Subject: raw\r\n\r\nas it is\r\n"
    assert mailbox.inject(raw).source().endswith(raw)


def test_mailboxes(restante, mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address))
    name = mailbox.message().mailbox
    (state,) = restante.mailboxes(prefix=name)
    assert (state["name"], state["messages"], state["unseen"]) == (name, 1, 1)


def test_transcript(mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address))
    lines = [line["text"] for line in mailbox.wait().transcript()["lines"]]
    assert any(line.lower().startswith("rcpt to:") for line in lines), lines


def relay_record(id: str, state: str, **more) -> dict:
    return {
        "id": id,
        "message": "1794",
        "mailbox": "ann",
        "target": "main",
        "sender": "shop@example.com",
        "recipients": [{"address": "qa@example.org", "state": "waiting", "reply": ""}],
        "origin": "release",
        "by": None,
        "state": state,
        "attempts": 1,
        "created": "2026-11-14T23:43:00.000000+00:00",
        "expires": "2026-11-15T23:43:00.000000+00:00",
        "next-attempt": None,
        "last-attempt": "2026-11-14T23:43:01.000000+00:00",
        "last-reply": "450 later",
        **more,
    }


@pytest.fixture
def relay_server():
    """A server that has only the relay, with prepared responses: lists of bodies by method and path, of which the last one is
    repeated. ``requests`` are the bodies that it got."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self):
            length = int(self.headers.get("Content-Length", 0))
            server.requests.append(json.loads(self.rfile.read(length)) if length else None)
            bodies = server.responses[f"{self.command} {self.path}"]
            body = json.dumps(bodies.pop(0) if len(bodies) > 1 else bodies[0]).encode()
            self.send_response(202 if self.command == "POST" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = respond

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.responses, server.requests = {}, []
    server.client = Restante(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_release_and_wait(relay_server):
    line = {"at": "2026-11-14T23:43:01.000000+00:00", "from": "server", "text": "220 mx"}
    relay_server.responses = {
        "POST /api/v2/messages/1794/release": [relay_record("7", "queued")],
        "GET /api/v2/relay/entries/7": [relay_record("7", "sending"), relay_record("7", "delivered", transcript=[line])],
    }
    client = relay_server.client
    entry = client.release("1794", to="qa@example.org", target="main")
    assert (entry.id, entry.state, entry.is_final) == ("7", "queued", False)
    assert entry.recipients[0].address == "qa@example.org" and entry.last_attempt > entry.created
    entry = client.wait_for_relay(entry)
    assert (entry.state, entry.is_final, entry.transcript[0]["text"]) == ("delivered", True, "220 mx")
    client.release("1794", to=["a@x.org", "b@x.org"])
    client.release("1794")
    bodies = [{"target": "main", "to": ["qa@example.org"]}, None, None, {"to": ["a@x.org", "b@x.org"]}, {}]
    assert relay_server.requests == bodies


def test_wait_for_relay_raises_a_timeout(relay_server):
    relay_server.responses = {"GET /api/v2/relay/entries/7": [relay_record("7", "queued")]}
    with pytest.raises(WaitTimeout, match="relay entry 7 is still queued after 1 attempts: 450 later"):
        relay_server.client.wait_for_relay("7", timeout=0)


def test_relay_entries(relay_server):
    path = "GET /api/v2/relay/entries?"
    relay_server.responses = {
        path + "message=1794&target=main&state=failed&limit=200": [{"entries": [relay_record("9", "failed")], "next": "5"}],
        path + "message=1794&target=main&state=failed&before=5&limit=200": [{"entries": [], "next": None}],
        path + "limit=1": [{"entries": [relay_record("9", "failed")], "next": "9"}],
    }
    client = relay_server.client
    assert [one.id for one in client.relay_entries(message="1794", target="main", state="failed")] == ["9"]
    assert [one.id for one in client.relay_entries(limit=1)] == ["9"]


def test_webhook_entries(relay_server):
    record = relay_record("7", "failed", event="stored", **{"webhook-id": "stored-1794-x"})
    relay_server.responses = {"GET /api/v2/webhooks/entries?state=failed&limit=200": [{"entries": [record], "next": None}]}
    (entry,) = relay_server.client.webhook_entries(state="failed")
    assert (entry.id, entry.event, entry.webhook_id, entry.last_reply) == ("7", "stored", "stored-1794-x", "450 later")


def test_release_without_targets(restante, mailbox, restante_smtp):
    send(restante_smtp, message(mailbox.address))
    with pytest.raises(RestanteError, match="relay target") as failure:
        restante.release(mailbox.wait(), to="qa@example.org")
    assert failure.value.status == 422
    assert list(restante.relay_entries()) == []
    assert list(restante.webhook_entries()) == []
    with pytest.raises(NotFound):
        restante.relay_entry("7")


def test_a_new_mailbox_has_no_last_message(mailbox):
    assert mailbox.last() == "0"


def test_error_text_hides_the_password_in_the_url():
    server = Restante("http://ann:s3cret@127.0.0.1:9/")
    assert server.url == "http://127.0.0.1:9"
    with pytest.raises(RestanteError) as failure:
        server.about()
    assert "s3cret" not in str(failure.value)


def test_port_that_does_not_speak_http(restante_smtp):
    with pytest.raises(RestanteError, match="the request to .* failed"):
        Restante("http://{}:{}".format(*restante_smtp)).about()


def test_no_server():
    with pytest.raises(RestanteError, match="the request to .* failed") as failure:
        Restante("http://127.0.0.1:9").mailbox("ann").messages()
    assert failure.value.status is None and not isinstance(failure.value, Refused)
