"""Entries of the webhook queue: events that are sent to other programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .relay import parse_attempts


@dataclass(frozen=True)
class WebhookEntry:
    """An event that is sent to one target."""

    id: str
    #: The id of the message.
    message: str
    #: The mailbox of the copy that was stored or deleted.
    mailbox: str
    #: The name of the target.
    target: str
    #: ``stored`` or ``deleted``.
    event: str
    #: The header field ``webhook-id`` of the requests.
    webhook_id: str
    #: ``queued``, ``sending``, ``delivered``, ``failed`` or ``cancelled``.
    state: str
    attempts: int
    created: datetime
    #: When the entry fails if it could not be sent before.
    expires: datetime
    next_attempt: datetime | None
    last_attempt: datetime | None
    #: The last response of the target, or the error that prevented one.
    last_reply: str


def parse_webhook_entry(record: dict[str, Any]) -> WebhookEntry:
    """Returns an entry from its JSON."""
    names = ("id", "message", "mailbox", "target", "event")
    values = {name: record[name] for name in names}
    return WebhookEntry(**values, webhook_id=record["webhook-id"], **parse_attempts(record))
