"""The server and its mailboxes."""

from __future__ import annotations

import base64
import os
import ssl
import time
from typing import Any, Iterable, Iterator, Mapping
from urllib.parse import quote

from .errors import RestanteError, UnexpectedMail, WaitTimeout
from .message import Message, MessageEntry, Summary, WholeMessage, parse_entry, parse_message
from .relay import RelayEntry, parse_relay_entry
from .transport import REQUEST_TIMEOUT, Transport, details, problem
from .webhook import WebhookEntry, parse_webhook_entry

#: The URL of the server if none is given.
DEFAULT_URL = "http://localhost:9000"
#: The maximum number of messages in one response.
PAGE_SIZE = 200
#: The pauses between requests for the state of an entry of the relay queue, in seconds. They double up to the maximum.
MIN_PAUSE, MAX_PAUSE = 0.05, 1.0


class Restante:
    """A Restante server.

    By default its URL is in the environment variable ``RESTANTE_SERVER``. If the server requires a login, pass a ``token``, or a
    ``user`` as a pair of name and password, or set ``RESTANTE_TOKEN``, or ``RESTANTE_USER`` and ``RESTANTE_PASSWORD``. ``tls``
    is for certificates that the system does not trust.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        user: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if token is None and user is None:
            token = os.environ.get("RESTANTE_TOKEN") or None
            name = os.environ.get("RESTANTE_USER")
            user = (name, os.environ.get("RESTANTE_PASSWORD", "")) if name else None
        self._transport = Transport(url or os.environ.get("RESTANTE_SERVER") or DEFAULT_URL, token, user, tls)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._transport.url

    def mailbox(self, name: str) -> Mailbox:
        """Returns a mailbox by its name or an address. It can be empty."""
        return Mailbox(self._transport, name)

    def mailboxes(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yields the mailboxes that contain messages, in ascending order of name: each with ``name``, ``messages``, ``unseen``,
        ``bytes`` and ``newest``."""
        after = None
        while True:
            query = {"prefix": prefix or None, "after": after, "limit": 1000}
            page = self._transport.json("GET", "/api/v2/mailboxes", query=query)
            yield from page["mailboxes"]
            after = page["next"]
            if after is None:
                return

    def search(self, query: str, *, limit: int | None = None) -> Iterator[Summary]:
        """Yields the messages that match, newest first, at most ``limit``. ``docs/search.md`` describes the query language."""
        return search(self._transport, query, None, limit)

    def messages(
        self,
        *,
        query: str = "",
        tag: str | Iterable[str] = (),
        mailbox: str | None = None,
        limit: int | None = None,
        before: str | MessageEntry | None = None,
        after: str | MessageEntry | None = None,
    ) -> Iterator[MessageEntry]:
        """Yields the messages of all mailboxes, newest first, at most ``limit``. A message with several recipients is one
        message. They match ``query``, have all given tags, and ids less than ``before`` and greater than ``after``. With
        ``mailbox``, yields the copies in that mailbox: their ids, recipients, read marks and tags are those of the copies, and
        marking or deleting an entry affects only this copy."""
        next_page, left = message_id(before), limit
        while left is None or left > 0:
            page_size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            parameters = {**filters(query, tag, mailbox), "before": next_page, "after": message_id(after), "limit": page_size}
            page = self._transport.json("GET", "/api/v2/messages", query=parameters)
            for record in page["messages"]:
                yield parse_entry(self._transport, record, page.get("mailbox"))
            next_page = page["next"]
            if next_page is None:
                return
            left = None if left is None else left - len(page["messages"])

    def message(self, id: str = "latest") -> WholeMessage:
        """Returns a message by its id, or the latest, with its envelope and its copies."""
        record = self._transport.json("GET", f"/api/v2/messages/{quote(id, safe='')}")
        return parse_message(self._transport, record)

    def last(self) -> str:
        """Returns the id of the newest message, or ``"0"``. Pass it as ``after`` to wait for later messages."""
        return next((newest.id for newest in self.messages(limit=1)), "0")

    def wait(self, *, match: str = "", timeout: float = 30.0, after: str | MessageEntry | None = None) -> MessageEntry:
        """Waits for a message in any mailbox that matches, and returns the oldest one. A message that already exists counts,
        unless its id is not greater than ``after``. Raises :class:`WaitTimeout`, whose text lists what arrived instead."""
        return self.wait_for(1, match=match, timeout=timeout, after=after)[0]

    def wait_for(
        self, count: int, *, match: str = "", timeout: float = 30.0, after: str | MessageEntry | None = None
    ) -> list[MessageEntry]:
        """Waits for ``count`` messages in any mailbox that match. Returns them oldest first."""
        status, body = self._wait(match, timeout, after, count=count)
        if status == 408:
            raise WaitTimeout(self._timeout_text(details(body).get("detail", "")), self._entries(details(body)))
        if status >= 400:
            raise problem(status, body)
        return self._entries(details(body))

    def expect_none(
        self, *, match: str = "", timeout: float = 2.0, after: str | MessageEntry | None = None
    ) -> None:
        """Waits and checks that no matching message arrives in any mailbox. Raises :class:`UnexpectedMail` if one does."""
        status, body = self._wait(match, timeout, after, expect="none")
        if status == 409:
            messages = self._entries(details(body))
            raise UnexpectedMail(f"unexpected mail: {messages}", messages)
        if status >= 400:
            raise problem(status, body)

    def mark_messages(
        self, query: str = "", *, tag: str | Iterable[str] = (), mailbox: str | None = None, seen: bool = True
    ) -> int:
        """Marks the messages that match and have all given tags, in all mailboxes, as seen or not seen: without arguments, all
        messages. With ``mailbox``, marks only the copies in that mailbox. Returns their number."""
        parameters = filters(query, tag, mailbox)
        return self._transport.json("PATCH", "/api/v2/messages", query=parameters, body={"seen": seen})["marked"]

    def delete_messages(
        self, query: str = "", *, tag: str | Iterable[str] = (), mailbox: str | None = None
    ) -> int:
        """Deletes the messages that match and have all given tags, from all mailboxes. With ``mailbox``, deletes only the copies
        in that mailbox. One of the arguments is required. Returns the number of messages."""
        return self._transport.json("DELETE", "/api/v2/messages", query=filters(query, tag, mailbox))["deleted"]

    def delete_everything(self) -> int:
        """Deletes all messages in all mailboxes. Returns their number."""
        return self._transport.json("DELETE", "/api/v2/mailboxes")["deleted"]

    def release(
        self,
        message: str | Summary | MessageEntry,
        *,
        to: str | Iterable[str] | None = None,
        target: str | None = None,
    ) -> RelayEntry:
        """Sends a message to other mail servers, through a relay target of the server: to the given addresses, or to the
        recipients of its envelope. ``target`` may be left out if there is only one. Returns the entry of the relay queue; the
        message may not be sent yet. Raises :class:`Refused` if the target does not allow a recipient."""
        body: dict[str, Any] = {}
        if target is not None:
            body["target"] = target
        if to is not None:
            body["to"] = [to] if isinstance(to, str) else list(to)
        path = f"/api/v2/messages/{quote(message_id(message) or '', safe='')}/release"
        return parse_relay_entry(self._transport.json("POST", path, body=body))

    def relay_entries(
        self,
        *,
        message: str | MessageEntry | None = None,
        target: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> Iterator[RelayEntry]:
        """Yields the entries of the relay queue, newest first, at most ``limit``: of a message, of a target, or in a state."""
        filters = {"message": message_id(message), "target": target, "state": state}
        return map(parse_relay_entry, self._queue_entries("relay", filters, limit))

    def webhook_entries(
        self,
        *,
        message: str | MessageEntry | None = None,
        target: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> Iterator[WebhookEntry]:
        """Yields the entries of the webhook queue, as :meth:`relay_entries` does."""
        filters = {"message": message_id(message), "target": target, "state": state}
        return map(parse_webhook_entry, self._queue_entries("webhooks", filters, limit))

    def _queue_entries(self, queue: str, filters: dict[str, Any], left: int | None) -> Iterator[dict[str, Any]]:
        before = None
        while left is None or left > 0:
            query = {**filters, "before": before, "limit": PAGE_SIZE if left is None else min(left, PAGE_SIZE)}
            page = self._transport.json("GET", f"/api/v2/{queue}/entries", query=query)
            yield from page["entries"]
            before = page["next"]
            if before is None:
                return
            left = None if left is None else left - len(page["entries"])

    def relay_entry(self, id: str) -> RelayEntry:
        """Returns an entry of the relay queue, with the transcript of its last attempt."""
        return parse_relay_entry(self._transport.json("GET", f"/api/v2/relay/entries/{quote(id, safe='')}"))

    def wait_for_relay(self, entry: str | RelayEntry, *, timeout: float = 30.0) -> RelayEntry:
        """Waits until an entry of the relay queue is not sent again. Returns it, with ``state`` ``delivered``, ``failed`` or
        ``cancelled``. Raises :class:`WaitTimeout`, whose text has the last reply."""
        id = entry.id if isinstance(entry, RelayEntry) else entry
        end, pause = time.monotonic() + timeout, MIN_PAUSE
        while True:
            current = self.relay_entry(id)
            if current.is_final:
                return current
            left = end - time.monotonic()
            if left <= 0:
                reply = f": {current.last_reply}" if current.last_reply else ""
                raise WaitTimeout(f"relay entry {id} is still {current.state} after {current.attempts} attempts{reply}")
            time.sleep(min(pause, left))
            pause = min(pause * 2, MAX_PAUSE)

    def lease(self, expires_in: str = "1h") -> Run:
        """Leases a run: a client with a project of its own, whose mail no other client sees, for at most ``24h``. Mail is delivered
        to it if its recipient is an address of the run's ``domain``, or if its sender logs in with ``username`` and ``password``."""
        record = self._transport.json("POST", "/api/v2/runs", body={"expires-in": expires_in})
        return Run(self._transport.for_run(record["token"]), record)

    def usage(self) -> dict[str, Any]:
        """Returns the numbers of ``messages``, ``copies`` and ``mailboxes`` that the credentials allow, and their size in
        ``bytes``. ``messages`` is ``None`` for a token for some mailboxes."""
        return self._transport.json("GET", "/api/v2/usage")

    def about(self) -> dict[str, Any]:
        """Returns information about the server, such as its ports."""
        return self._transport.json("GET", "/api/v2/server")

    def _wait(
        self, match: str, timeout: float, after: str | MessageEntry | None, **more: Any
    ) -> tuple[int, bytes]:
        return wait(self._transport, "/api/v2/wait", match, timeout, message_id(after), **more)

    def _entries(self, response: dict[str, Any]) -> list[MessageEntry]:
        return [parse_entry(self._transport, record) for record in response.get("messages", [])]

    def _timeout_text(self, detail: str) -> str:
        """Returns the text of a timeout, with the messages that exist instead."""
        newest = list(self.messages(limit=5))
        content = "; ".join(repr(one) for one in reversed(newest)) if newest else "no messages"
        return f"{detail} The server contains {content}"

    def __repr__(self) -> str:
        return f"Restante({self.url!r})"


class Run(Restante):
    """A leased run, and the client for its mail. As a context manager, it ends the run."""

    def __init__(self, transport: Transport, record: Mapping[str, Any]) -> None:
        self._transport = transport
        #: The name of the project that contains the mail of the run.
        self.project: str = record["project"]
        #: The token, for other clients of this run.
        self.token: str = record["token"]
        #: The domain whose mail is delivered to the run.
        self.domain: str = record["domain"]
        #: The time when the run ends, in RFC 3339 format.
        self.expires: str = record["expires"]
        #: The host and port for SMTP, and a login whose mail is delivered to the run.
        self.smtp: tuple[str, int] = (record["smtp"]["host"], record["smtp"]["port"])
        self.username: str = record["smtp"]["username"]
        self.password: str = record["smtp"]["password"]

    def address(self, name: str) -> str:
        """Returns an address whose mail is delivered to the run."""
        return f"{name}@{self.domain}"

    def end(self) -> None:
        """Deletes all mail of the run. Its token is valid until it expires."""
        self._transport.json("DELETE", "/api/v2/runs/current")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"Run({self.project!r})"


class Mailbox:
    """A mailbox of a server."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def wait(self, *, match: str = "", timeout: float = 30.0, after: str | Summary | None = None) -> Message:
        """Waits for a message that matches and fetches the oldest one. A message that is already in the mailbox counts, unless
        its id is not greater than ``after``. Use an address only once, or pass the last message that you know (:meth:`last`).
        Raises :class:`WaitTimeout`, whose text lists what arrived instead."""
        first = self.wait_for(1, match=match, timeout=timeout, after=after)[0]
        return self.message(first.id)

    def wait_for(
        self, count: int, *, match: str = "", timeout: float = 30.0, after: str | Summary | None = None
    ) -> list[Summary]:
        """Waits for ``count`` messages that match. Returns them oldest first."""
        status, body = self._wait(match, timeout, after, count=count)
        if status == 408:
            raise WaitTimeout(self._timeout_text(details(body).get("detail", "")), self._summaries(details(body)))
        if status >= 400:
            raise problem(status, body)
        return self._summaries(details(body))

    def expect_none(self, *, match: str = "", timeout: float = 2.0, after: str | Summary | None = None) -> None:
        """Waits and checks that no matching message arrives. Raises :class:`UnexpectedMail` if one does."""
        status, body = self._wait(match, timeout, after, expect="none")
        if status == 409:
            messages = self._summaries(details(body))
            raise UnexpectedMail(f"unexpected mail: {messages}", messages)
        if status >= 400:
            raise problem(status, body)

    def message(self, id: str = "latest") -> Message:
        """Returns a message by its id, or the latest."""
        return Message(self._transport, self._transport.json("GET", f"{self._path(1)}/{quote(id, safe='')}"))

    def last(self) -> str:
        """Returns the id of the newest message, or ``"0"``. Pass it as ``after`` to wait for later messages."""
        newest = self._transport.json("GET", self._path(1), query={"limit": 1})
        return newest[0]["id"] if newest else "0"

    def messages(self) -> list[Summary]:
        """Returns all messages, oldest first."""
        return [Summary(self._transport, record) for record in self._transport.json("GET", self._path(1))]

    def search(self, query: str, *, limit: int | None = None) -> Iterator[Summary]:
        """Yields the messages of this mailbox that match, newest first."""
        return search(self._transport, query, self.name, limit)

    def inject(
        self,
        mail: bytes | None = None,
        *,
        sender: str = "test@example.org",
        to: list[str] | None = None,
        subject: str | None = None,
        text: str | None = None,
        html: str | None = None,
        headers: Mapping[str, str] | None = None,
        attachments: Mapping[str, bytes] | None = None,
    ) -> Message:
        """Adds a message to the mailbox without SMTP: the source of a message, or one that is built from the other arguments."""
        if mail is not None:
            options: dict[str, Any] = {"body": mail, "content_type": "message/rfc822"}
        else:
            files = [
                {"filename": name, "content-type": "application/octet-stream", "content": base64.b64encode(data).decode()}
                for name, data in (attachments or {}).items()
            ]
            fields = {
                "from": sender,
                "to": to,
                "subject": subject,
                "text": text,
                "html": html,
                "headers": dict(headers) if headers else None,
                "attachments": files or None,
            }
            options = {"body": {name: value for name, value in fields.items() if value is not None}}
        stored = self._transport.json("POST", self._path(2), **options)["messages"]
        if not stored:
            raise RestanteError("the server accepted the message but did not store it, because a rule or a script discarded it")
        # A script on the server can redirect the message to another mailbox.
        return Mailbox(self._transport, stored[0]["mailbox"]).message(stored[0]["id"])

    def purge(self) -> None:
        """Deletes all messages in the mailbox."""
        self._transport.json("DELETE", self._path(1))

    def _wait(
        self, match: str, timeout: float, after: str | Summary | None, **more: Any
    ) -> tuple[int, bytes]:
        return wait(self._transport, f"{self._path(2)}/wait", match, timeout, message_id(after), **more)

    def _summaries(self, response: dict[str, Any]) -> list[Summary]:
        return [Summary(self._transport, record) for record in response.get("messages", [])]

    def _timeout_text(self, detail: str) -> str:
        """Returns the text of a timeout, with what the mailbox contains instead."""
        messages = self.messages()
        content = "; ".join(repr(one) for one in messages[-5:]) if messages else "no messages"
        return f"{detail} The mailbox {self.name} contains {content}"

    def _path(self, version: int) -> str:
        return f"/api/v{version}/mailbox/{quote(self.name, safe='')}"

    def __repr__(self) -> str:
        return f"<mailbox {self.name} of {self._transport.url}>"


def wait(
    transport: Transport, path: str, match: str, timeout: float, after: str | None, **more: Any
) -> tuple[int, bytes]:
    """Sends a request that waits for messages."""
    query = {"timeout": f"{timeout:.3f}s", "match": match or None, "after": after, **more}
    return transport.request("GET", path, query=query, timeout=timeout + REQUEST_TIMEOUT)


def message_id(message: str | Summary | MessageEntry | None) -> str | None:
    """Returns the id of a message that is given as such or by its id."""
    return message.id if isinstance(message, (Summary, MessageEntry)) else message


def filters(query: str, tag: str | Iterable[str], mailbox: str | None) -> dict[str, Any]:
    """Returns the parameters that select messages."""
    return {"q": query or None, "tag": [tag] if isinstance(tag, str) else list(tag), "mailbox": mailbox}


def search(transport: Transport, text: str, mailbox: str | None, limit: int | None) -> Iterator[Summary]:
    """Yields the results of a search, page by page."""
    before, left = None, limit
    while left is None or left > 0:
        query = {"q": text, "mailbox": mailbox, "before": before, "limit": min(left, 200) if left is not None else None}
        page = transport.json("GET", "/api/v2/search", query=query)
        for record in page["messages"]:
            yield Summary(transport, record)
        before = page["next"]
        if before is None:
            return
        left = None if left is None else left - len(page["messages"])
