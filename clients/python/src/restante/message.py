"""A message: its summary as listings have it, and what can be asked about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from .errors import NotFound
from .transport import Transport

#: Below this score a code is a guess that is more often wrong than right.
LIKELY = 0.5


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
    """A link: where it goes, and what a reader sees of it."""

    href: str
    text: str
    image_alt: str | None
    where: str
    kind: str


@dataclass(frozen=True)
class Attachment:
    """A file that came with a message."""

    filename: str
    content_type: str
    md5: str
    index: int


class Summary:
    """A message as a listing has it. Its content is fetched when it is asked for, and once only."""

    def __init__(self, transport: Transport, record: dict[str, Any]) -> None:
        self._transport = transport
        self._record = record
        self._content: dict[str, Any] | None = None

    @property
    def mailbox(self) -> str:
        """The mailbox that holds it."""
        return self._record["mailbox"]

    @property
    def id(self) -> str:
        """Its id within the mailbox; ids ascend with arrival."""
        return self._record["id"]

    @property
    def sender(self) -> str:
        """Who sent it: ``Name <address>``."""
        return self._record["from"]

    @property
    def to(self) -> list[str]:
        """To whom it was sent: ``Name <address>`` each."""
        return list(self._record["to"])

    @property
    def subject(self) -> str:
        """The subject, decoded."""
        return self._record["subject"]

    @property
    def received(self) -> datetime:
        """When the server received it."""
        return datetime.fromtimestamp(self._record["posix-millis"] / 1000, timezone.utc)

    @property
    def size(self) -> int:
        """The length of its source in bytes."""
        return self._record["size"]

    @property
    def seen(self) -> bool:
        """Whether it was marked as seen when this was fetched."""
        return self._record["seen"]

    @property
    def text(self) -> str:
        """The plain text; made from the HTML when there is only that."""
        return self._fetched()["body"]["text"]

    @property
    def html(self) -> str:
        """The HTML as it was sent; empty when there is none."""
        return self._fetched()["body"]["html"]

    @property
    def header(self) -> dict[str, list[str]]:
        """The header by canonical names, values not decoded."""
        return self._fetched()["header"]

    @property
    def attachments(self) -> list[Attachment]:
        """The files that came with it."""
        files = self._fetched()["attachments"]
        return [Attachment(file["filename"], file["content-type"], file["md5"], n) for n, file in enumerate(files)]

    def content(self, attachment: Attachment) -> bytes:
        """The content of one of the files."""
        path = f"/mailbox/dattach/{quote(self.mailbox, safe='')}/{self.id}/{attachment.index}/file"
        return self._transport.bytes("GET", path)

    def source(self) -> bytes:
        """The message byte for byte, behind the lines that were added when it was received."""
        return self._transport.bytes("GET", f"{self._path(1)}/source")

    def codes(self) -> list[Code]:
        """The one-time codes in it, the likeliest first."""
        found = self._transport.json("GET", f"{self._path(2)}/codes")["codes"]
        return [Code(one["code"], one["score"], one["before"], one["after"], one["where"]) for one in found]

    def code(self) -> str:
        """The one-time code in it. Raises :class:`NotFound` when there is none."""
        likely = [one for one in self.codes() if one.score >= LIKELY]
        if not likely:
            raise NotFound(f"there is no code in {self!r}")
        return likely[0].code

    def links(self) -> list[Link]:
        """The links in it, in their order."""
        found = self._transport.json("GET", f"{self._path(2)}/links")["links"]
        return [Link(one["href"], one["text"], one["image-alt"], one["where"], one["kind"]) for one in found]

    def link(self, wanted: str | re.Pattern[str] = "") -> str:
        """Where the first link goes whose address or text has these words, in any case, or matches this expression.

        Raises :class:`NotFound` when there is none.
        """
        pattern = re.compile(re.escape(wanted), re.IGNORECASE) if isinstance(wanted, str) else wanted
        links = self.links()
        for one in links:
            if any(pattern.search(text) for text in (one.href, one.text, one.image_alt or "")):
                return one.href
        raise NotFound(f"none of the {len(links)} links in {self!r} matches {wanted!r}")

    def transcript(self) -> dict[str, Any]:
        """The session that brought it: who said what, and when."""
        return self._transport.json("GET", f"{self._path(2)}/transcript")

    def mark_seen(self, seen: bool = True) -> None:
        """Marks it as seen, or as not seen."""
        self._transport.json("PATCH", self._path(1), body={"seen": seen})

    def delete(self) -> None:
        """Deletes it."""
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
    """A message that was fetched as a whole."""

    def __init__(self, transport: Transport, record: dict[str, Any]) -> None:
        super().__init__(transport, record)
        self._content = record
