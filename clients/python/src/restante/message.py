"""Messages, and what can be requested about them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from .errors import NotFound
from .transport import Transport

#: A code with a lower score is more often wrong than right.
MIN_SCORE = 0.5


@dataclass(frozen=True)
class Code:
    """A one-time code, with a score from 0 to 1 and the words around it."""

    code: str
    score: float
    before: str
    after: str
    where: str


@dataclass(frozen=True)
class Link:
    """A link: its URL and its visible text."""

    href: str
    text: str
    image_alt: str | None
    where: str
    kind: str


@dataclass(frozen=True)
class Attachment:
    """An attached file."""

    filename: str
    content_type: str
    md5: str
    index: int


class Summary:
    """A message in a listing. Its content is fetched when it is first used."""

    def __init__(self, transport: Transport, record: dict[str, Any]) -> None:
        self._transport = transport
        self._record = record
        self._content: dict[str, Any] | None = None

    @property
    def mailbox(self) -> str:
        """The mailbox that contains the message."""
        return self._record["mailbox"]

    @property
    def id(self) -> str:
        """The id in the mailbox. Later messages have greater ids."""
        return self._record["id"]

    @property
    def sender(self) -> str:
        """The sender: ``Name <address>``."""
        return self._record["from"]

    @property
    def to(self) -> list[str]:
        """The recipients: ``Name <address>`` each."""
        return list(self._record["to"])

    @property
    def subject(self) -> str:
        """The subject, decoded."""
        return self._record["subject"]

    @property
    def received(self) -> datetime:
        """The time when the server received the message."""
        return datetime.fromtimestamp(self._record["posix-millis"] / 1000, timezone.utc)

    @property
    def size(self) -> int:
        """The length of the source in bytes."""
        return self._record["size"]

    @property
    def seen(self) -> bool:
        """Whether the message was marked as seen when it was fetched."""
        return self._record["seen"]

    @property
    def text(self) -> str:
        """The plain text, converted from the HTML if the message has no plain text."""
        return self._fetched()["body"]["text"]

    @property
    def html(self) -> str:
        """The HTML as it was sent; empty if there is none."""
        return self._fetched()["body"]["html"]

    @property
    def header(self) -> dict[str, list[str]]:
        """The header fields by canonical name. Values are not decoded."""
        return self._fetched()["header"]

    @property
    def attachments(self) -> list[Attachment]:
        """The attachments."""
        files = self._fetched()["attachments"]
        return [Attachment(file["filename"], file["content-type"], file["md5"], n) for n, file in enumerate(files)]

    def content(self, attachment: Attachment) -> bytes:
        """Returns the content of an attachment."""
        path = f"/mailbox/dattach/{quote(self.mailbox, safe='')}/{self.id}/{attachment.index}/file"
        return self._transport.bytes("GET", path)

    def source(self) -> bytes:
        """Returns the source byte for byte, after the header fields that the server added on arrival."""
        return self._transport.bytes("GET", f"{self._path(1)}/source")

    def codes(self) -> list[Code]:
        """Returns the possible one-time codes, the most likely first."""
        found = self._transport.json("GET", f"{self._path(2)}/codes")["codes"]
        return [Code(one["code"], one["score"], one["before"], one["after"], one["where"]) for one in found]

    def code(self) -> str:
        """Returns the one-time code. Raises :class:`NotFound` if there is none."""
        likely = [one for one in self.codes() if one.score >= MIN_SCORE]
        if not likely:
            raise NotFound(f"there is no code in {self!r}")
        return likely[0].code

    def links(self) -> list[Link]:
        """Returns the links in order."""
        found = self._transport.json("GET", f"{self._path(2)}/links")["links"]
        return [Link(one["href"], one["text"], one["image-alt"], one["where"], one["kind"]) for one in found]

    def link(self, wanted: str | re.Pattern[str] = "") -> str:
        """Returns the URL of the first link whose URL or text contains ``wanted``, ignoring case, or matches the expression.

        Raises :class:`NotFound` if there is none.
        """
        pattern = re.compile(re.escape(wanted), re.IGNORECASE) if isinstance(wanted, str) else wanted
        links = self.links()
        for one in links:
            if any(pattern.search(text) for text in (one.href, one.text, one.image_alt or "")):
                return one.href
        raise NotFound(f"none of the {len(links)} links in {self!r} matches {wanted!r}")

    def transcript(self) -> dict[str, Any]:
        """Returns the transcript of the SMTP session that delivered the message."""
        return self._transport.json("GET", f"{self._path(2)}/transcript")

    def mark_seen(self, seen: bool = True) -> None:
        """Marks the message as seen or not seen."""
        self._transport.json("PATCH", self._path(1), body={"seen": seen})

    def delete(self) -> None:
        """Deletes the message."""
        self._transport.json("DELETE", self._path(1))

    def _fetched(self) -> dict[str, Any]:
        if self._content is None:
            self._content = self._transport.json("GET", self._path(1))
        return self._content

    def _path(self, version: int) -> str:
        return f"/api/v{version}/mailbox/{quote(self.mailbox, safe='')}/{self.id}"

    def __repr__(self) -> str:
        return f"<message {self.id} of {self.mailbox}: {self.subject!r} from {self.sender}>"


class Message(Summary):
    """A message with its content."""

    def __init__(self, transport: Transport, record: dict[str, Any]) -> None:
        super().__init__(transport, record)
        self._content = record
