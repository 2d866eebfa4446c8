"""Messages, and what can be requested about them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from .errors import NotFound
from .transport import Transport

#: A code with a lower score is more often wrong than right.
MIN_SCORE = 0.5


@dataclass(frozen=True)
class Code:
    """A one-time code, with a score from 0 to 1 and the words around it.

    ``origin`` is the origin that the header field ``OTP-Token`` declares for its code, such as ``https://example.com``.
    """

    code: str
    score: float
    before: str
    after: str
    where: str
    origin: str | None = None


@dataclass(frozen=True)
class Link:
    """A link: its URL and its visible text. ``main`` is true for the link that the message asks to follow, if there is one."""

    href: str
    text: str
    image_alt: str | None
    where: str
    kind: str
    main: bool = False


@dataclass(frozen=True)
class Score:
    """Percentages of support in mail clients."""

    supported: float
    partial: float
    unsupported: float


@dataclass(frozen=True)
class Feature:
    """A feature of HTML or CSS that a message uses: how often, in which lines of the HTML, and its support.

    ``clients`` has the support in the newest tested version of each client: ``family``, ``platform``, ``version``, ``support``
    (``yes``, ``partial``, ``no`` or ``unknown``) and ``note``.
    """

    slug: str
    title: str
    category: str
    url: str | None
    count: int
    lines: list[int]
    score: Score
    clients: list[dict[str, Any]]


@dataclass(frozen=True)
class HtmlCheck:
    """Which mail clients support the HTML of a message. The features are sorted, the most harmful first."""

    score: Score
    features: list[Feature]
    truncated: bool


@dataclass(frozen=True)
class Attachment:
    """An attached file."""

    filename: str
    content_type: str
    md5: str
    index: int


def _score(record: dict[str, float]) -> Score:
    return Score(record["supported"], record["partial"], record["unsupported"])


class Readable:
    """What can be requested about a message. Its content is fetched when it is first used."""

    _transport: Transport

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
        return self._transport.bytes("GET", self._attachment_path(attachment.index))

    def source(self) -> bytes:
        """Returns the source byte for byte, after the header fields that the server added on arrival."""
        return self._transport.bytes("GET", self._resource("source"))

    def codes(self) -> list[Code]:
        """Returns the possible one-time codes, the most likely first."""
        found = self._transport.json("GET", self._resource("codes"))["codes"]
        return [
            Code(one["code"], one["score"], one["before"], one["after"], one["where"], one.get("origin")) for one in found
        ]

    def code(self) -> str:
        """Returns the one-time code. Raises :class:`NotFound` if there is none."""
        likely = [one for one in self.codes() if one.score >= MIN_SCORE]
        if not likely:
            raise NotFound(f"there is no code in {self!r}")
        return likely[0].code

    def links(self) -> list[Link]:
        """Returns the links in order."""
        found = self._transport.json("GET", self._resource("links"))["links"]
        return [
            Link(one["href"], one["text"], one["image-alt"], one["where"], one["kind"], one.get("main", False))
            for one in found
        ]

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

    def html_check(self) -> HtmlCheck:
        """Returns which mail clients support the HTML. Raises :class:`NotFound` if the message has no HTML."""
        found = self._transport.json("GET", self._resource("html-check"))
        features = [
            Feature(
                one["slug"],
                one["title"],
                one["category"],
                one["url"],
                one["count"],
                one["lines"],
                _score(one["score"]),
                one["clients"],
            )
            for one in found["features"]
        ]
        return HtmlCheck(_score(found["score"]), features, found["truncated"])

    def transcript(self) -> dict[str, Any]:
        """Returns the transcript of the SMTP session that delivered the message."""
        return self._transport.json("GET", self._resource("transcript"))

    def _fetched(self) -> dict[str, Any]:
        """Returns the content of the message."""
        raise NotImplementedError

    def _resource(self, name: str) -> str:
        """Returns the path of ``source``, ``codes``, ``links``, ``html-check`` or ``transcript``."""
        raise NotImplementedError

    def _attachment_path(self, index: int) -> str:
        raise NotImplementedError


class Summary(Readable):
    """A message in the listing of a mailbox. Its content is fetched when it is first used."""

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

    def _resource(self, name: str) -> str:
        return f"{self._path(1 if name == 'source' else 2)}/{name}"

    def _attachment_path(self, index: int) -> str:
        return f"/mailbox/dattach/{quote(self.mailbox, safe='')}/{self.id}/{index}/file"

    def __repr__(self) -> str:
        return f"<message {self.id} of {self.mailbox}: {self.subject!r} from {self.sender}>"


class Message(Summary):
    """A message with its content."""

    def __init__(self, transport: Transport, record: dict[str, Any]) -> None:
        super().__init__(transport, record)
        self._content = record


@dataclass(frozen=True)
class MessageCopy:
    """The copy of a message in one mailbox."""

    mailbox: str
    #: The id in the mailbox. It can differ from the id of the message.
    id: str
    number: int
    seen: bool
    tags: list[str]
    #: The addresses to which the message was sent and that belong to the mailbox.
    recipients: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Client:
    """The client that delivered a message."""

    ip: str | None
    helo: str
    #: The name with which it logged in.
    login: str | None


@dataclass(frozen=True, repr=False, eq=False)
class MessageEntry(Readable):
    """A message of the server, with copies in one mailbox or in several. Its content is fetched when it is first used.

    In the list of one mailbox, an entry is the copy in that mailbox: reading, marking and deleting it affect only this copy.
    """

    #: The id of the message, or of the copy. Later messages have greater ids.
    id: str
    #: The sender: ``Name <address>``.
    sender: str
    #: The recipients of the header fields To and Cc: ``Name <address>`` each.
    to: list[str]
    cc: list[str]
    #: The addresses to which the message was sent.
    recipients: list[str]
    #: The mailboxes that contain a copy.
    mailboxes: list[str]
    #: The subject, decoded.
    subject: str
    #: The first words of the text.
    snippet: str
    #: The time when the server received the message.
    received: datetime
    #: The length of the source in bytes.
    size: int
    attachment_count: int
    #: Whether all copies were marked as seen when the message was fetched.
    seen: bool
    tags: list[str]
    _transport: Transport
    #: The mailbox that was listed, if the entry is the copy in it.
    mailbox: str | None = None
    #: The content, after it was fetched.
    _content: dict[str, Any] = field(default_factory=dict, init=False)

    def mark_seen(self, seen: bool = True) -> None:
        """Marks all copies of the message as seen or not seen, or only the copy in the listed mailbox."""
        self._transport.json("PATCH", self._change_path(), body={"seen": seen})

    def set_tags(self, *tags: str) -> None:
        """Replaces the tags of all copies, also if the entry is the copy in one mailbox. Without tags, it removes all."""
        self._transport.json("PATCH", self._path(), body={"tags": tags})

    def delete(self) -> None:
        """Deletes the message from all mailboxes, or only the copy in the listed mailbox."""
        self._transport.json("DELETE", self._change_path())

    def _fetched(self) -> dict[str, Any]:
        if not self._content:
            mailbox, id = self.mailbox, self.id
            if mailbox is None:
                copy = self._transport.json("GET", self._path())["copies"][0]
                mailbox, id = copy["mailbox"], copy["id"]
            self._content.update(self._transport.json("GET", copy_path(mailbox, id)))
        return self._content

    def _change_path(self) -> str:
        """Returns the path of the copy, or of the message. The path of a message also accepts the id of a copy, but then changes
        all copies."""
        return self._path() if self.mailbox is None else copy_path(self.mailbox, self.id)

    def _path(self) -> str:
        return f"/api/v2/messages/{quote(self.id, safe='')}"

    def _resource(self, name: str) -> str:
        return f"{self._path()}/{name}"

    def _attachment_path(self, index: int) -> str:
        return f"{self._path()}/attachments/{index}"

    def __repr__(self) -> str:
        return f"<message {self.id} of {', '.join(self.mailboxes)}: {self.subject!r} from {self.sender}>"


@dataclass(frozen=True, repr=False, eq=False)
class WholeMessage(MessageEntry):
    """A message of the server, with its envelope and its copies."""

    #: The sender of the envelope; empty for bounces.
    envelope_sender: str = ""
    client: Client = field(default_factory=lambda: Client(None, "", None))
    copies: list[MessageCopy] = field(default_factory=list)


def copy_path(mailbox: str, id: str) -> str:
    """Returns the path of the copy of a message in a mailbox."""
    return f"/api/v1/mailbox/{quote(mailbox, safe='')}/{quote(id, safe='')}"


def parse_entry(transport: Transport, record: dict[str, Any], mailbox: str | None = None) -> MessageEntry:
    """Returns an entry of a list of messages, or of the list of one mailbox."""
    return MessageEntry(**entry_fields(record), _transport=transport, mailbox=mailbox)


def parse_message(transport: Transport, record: dict[str, Any]) -> WholeMessage:
    """Returns a message with its envelope and its copies."""
    client = record["client"]
    return WholeMessage(
        **entry_fields(record),
        _transport=transport,
        envelope_sender=record["sender"],
        client=Client(client["ip"], client["helo"], client["login"]),
        copies=[
            # Older servers do not return the recipients of a copy.
            MessageCopy(
                copy["mailbox"], copy["id"], copy["number"], copy["seen"], copy["tags"], copy.get("recipients", [])
            )
            for copy in record["copies"]
        ],
    )


def entry_fields(record: dict[str, Any]) -> dict[str, Any]:
    names = ("id", "to", "cc", "recipients", "mailboxes", "subject", "snippet", "size", "seen", "tags")
    return {
        **{name: record[name] for name in names},
        "sender": record["from"],
        "received": datetime.fromisoformat(record["received"]),
        "attachment_count": record["attachments"],
    }
