"""Entries of the relay queue: messages that are sent to other mail servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class RelayRecipient:
    """A recipient of an entry."""

    address: str
    #: ``waiting``, ``delivered`` or ``failed``.
    state: str
    #: The last reply about this recipient; empty before the first attempt.
    reply: str


@dataclass(frozen=True)
class RelayEntry:
    """A message that is sent to some recipients through one target."""

    id: str
    #: The id of the message.
    message: str
    #: The mailbox of the copy that is sent.
    mailbox: str
    #: The name of the target.
    target: str
    #: The sender of the envelope; empty for bounces.
    sender: str
    recipients: list[RelayRecipient]
    #: ``release``, or ``forward`` for a message that a rule has added.
    origin: str
    #: The user or token that released the message.
    by: str | None
    #: ``queued``, ``sending``, ``delivered``, ``failed`` or ``cancelled``.
    state: str
    attempts: int
    created: datetime
    #: When the entry fails if it could not be sent before.
    expires: datetime
    next_attempt: datetime | None
    last_attempt: datetime | None
    #: The last reply of the target, or the error that prevented one.
    last_reply: str
    #: The lines of the last attempt: ``at``, ``from`` and ``text`` each. Only :meth:`Restante.relay_entry` and
    #: :meth:`Restante.wait_for_relay` fetch them.
    transcript: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def is_final(self) -> bool:
        """Whether the entry is not sent again, unless it is retried by hand."""
        return self.state not in ("queued", "sending")


def parse_relay_entry(record: dict[str, Any]) -> RelayEntry:
    """Returns an entry from its JSON."""
    names = ("id", "message", "mailbox", "target", "sender", "origin", "by")
    return RelayEntry(
        **{name: record[name] for name in names},
        recipients=[RelayRecipient(one["address"], one["state"], one["reply"]) for one in record["recipients"]],
        transcript=record.get("transcript", []),
        **parse_attempts(record),
    )


def parse_attempts(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields that entries of all queues have: their state and their attempts."""
    return {
        "state": record["state"],
        "attempts": record["attempts"],
        "created": datetime.fromisoformat(record["created"]),
        "expires": datetime.fromisoformat(record["expires"]),
        "next_attempt": _time(record["next-attempt"]),
        "last_attempt": _time(record["last-attempt"]),
        "last_reply": record["last-reply"],
    }


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
