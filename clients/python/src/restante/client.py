"""The server and its mailboxes."""

from __future__ import annotations

import base64
import os
import ssl
from typing import Any, Iterator, Mapping
from urllib.parse import quote

from .errors import RestanteError, UnexpectedMail, WaitTimeout
from .message import Message, Summary
from .transport import PATIENCE, Transport, details, problem

#: Where the server is when nobody says so.
DEFAULT_URL = "http://localhost:9000"


class Restante:
    """A Restante server.

    Without arguments it is the one that the variable ``RESTANTE_SERVER`` names. A server that is locked wants a ``token``,
    or a ``user`` as a pair of name and password; otherwise ``RESTANTE_TOKEN``, or ``RESTANTE_USER`` and
    ``RESTANTE_PASSWORD``, have them. ``tls`` is for certificates that the system does not trust.
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
        """Where the server is."""
        return self._transport.url

    def mailbox(self, name: str) -> Mailbox:
        """A mailbox, by its name or an address. It need not hold anything."""
        return Mailbox(self._transport, name)

    def mailboxes(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """The mailboxes that hold something, ascending by name: each with ``name``, ``messages``, ``unseen``, ``bytes``
        and ``newest``."""
        after = None
        while True:
            query = {"prefix": prefix or None, "after": after, "limit": 1000}
            page = self._transport.json("GET", "/api/v2/mailboxes", query=query)
            yield from page["mailboxes"]
            after = page["next"]
            if after is None:
                return

    def search(self, query: str, *, limit: int | None = None) -> Iterator[Summary]:
        """The messages that match, newest first, at most ``limit``. The language is described in ``docs/search.md``."""
        return search(self._transport, query, None, limit)

    def delete_everything(self) -> int:
        """Deletes all mail of all mailboxes; how much that was."""
        return self._transport.json("DELETE", "/api/v2/mailboxes")["deleted"]

    def about(self) -> dict[str, Any]:
        """What the server tells about itself, its ports among it."""
        return self._transport.json("GET", "/api/v2/server")

    def __repr__(self) -> str:
        return f"Restante({self.url!r})"


class Mailbox:
    """A mailbox of a server."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self.name = name

    def wait(self, *, match: str = "", timeout: float = 30.0, after: str | Summary | None = None) -> Message:
        """Waits for a message that matches and fetches it: the oldest of them. One that is there already counts, unless its
        id is not above that of ``after``; so use an address once, or say behind which message to look (:meth:`last`).
        Raises :class:`WaitTimeout`, which tells what came instead."""
        first = self.wait_for(1, match=match, timeout=timeout, after=after)[0]
        return self.message(first.id)

    def wait_for(
        self, count: int, *, match: str = "", timeout: float = 30.0, after: str | Summary | None = None
    ) -> list[Summary]:
        """Waits for so many messages that match, oldest first."""
        status, body = self._wait(match, timeout, after, count=count)
        if status == 408:
            raise WaitTimeout(self._sad_story(details(body).get("detail", "")), self._summaries(details(body)))
        if status >= 400:
            raise problem(status, body)
        return self._summaries(details(body))

    def expect_none(self, *, match: str = "", timeout: float = 2.0, after: str | Summary | None = None) -> None:
        """Waits and makes sure that nothing comes that matches. Raises :class:`UnexpectedMail`."""
        status, body = self._wait(match, timeout, after, expect="none")
        if status == 409:
            messages = self._summaries(details(body))
            raise UnexpectedMail(f"unexpected mail: {messages}", messages)
        if status >= 400:
            raise problem(status, body)

    def message(self, id: str = "latest") -> Message:
        """A message by its id, or the latest."""
        return Message(self._transport, self._transport.json("GET", f"{self._path(1)}/{quote(id, safe='')}"))

    def last(self) -> str:
        """The id of the newest message, or ``"0"``: what comes from now on is behind it."""
        newest = self._transport.json("GET", self._path(1), query={"limit": 1})
        return newest[0]["id"] if newest else "0"

    def messages(self) -> list[Summary]:
        """All messages, oldest first."""
        return [Summary(self._transport, record) for record in self._transport.json("GET", self._path(1))]

    def search(self, query: str, *, limit: int | None = None) -> Iterator[Summary]:
        """The messages of this mailbox that match, newest first."""
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
        """Puts a message into the mailbox without SMTP: a whole mail, or one that is made of the other arguments."""
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
            raise RestanteError("the server took the message and, as its rules want it, did not keep it")
        # A script on the server may have sent it elsewhere.
        return Mailbox(self._transport, stored[0]["mailbox"]).message(stored[0]["id"])

    def purge(self) -> None:
        """Deletes everything in the mailbox."""
        self._transport.json("DELETE", self._path(1))

    def _wait(
        self, match: str, timeout: float, after: str | Summary | None, **more: Any
    ) -> tuple[int, bytes]:
        after = after.id if isinstance(after, Summary) else after
        query = {"timeout": f"{timeout:.3f}s", "match": match or None, "after": after, **more}
        return self._transport.request("GET", f"{self._path(2)}/wait", query=query, patience=timeout + PATIENCE)

    def _summaries(self, answer: dict[str, Any]) -> list[Summary]:
        return [Summary(self._transport, record) for record in answer.get("messages", [])]

    def _sad_story(self, detail: str) -> str:
        """Why the wait was in vain: whoever reads the failed test wants to know what is there instead."""
        there = self.messages()
        holds = "; ".join(repr(one) for one in there[-5:]) if there else "nothing"
        return f"{detail} The mailbox {self.name} holds {holds}"

    def _path(self, version: int) -> str:
        return f"/api/v{version}/mailbox/{quote(self.name, safe='')}"

    def __repr__(self) -> str:
        return f"<mailbox {self.name} of {self._transport.url}>"


def search(transport: Transport, text: str, mailbox: str | None, limit: int | None) -> Iterator[Summary]:
    """Goes through the pages of a search."""
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
