"""Waits for messages in tests: a client for the Restante mail server.

    from restante import Restante

    box = Restante().mailbox("ann")
    sign_up("ann@example.org")
    mail = box.wait(match="subject:welcome")
    enter(mail.code())
"""

from .client import Mailbox, Restante
from .errors import NotFound, Refused, RestanteError, UnexpectedMail, WaitTimeout
from .message import Attachment, Code, Link, Message, Summary

__all__ = [
    "Attachment",
    "Code",
    "Link",
    "Mailbox",
    "Message",
    "NotFound",
    "Refused",
    "Restante",
    "RestanteError",
    "Summary",
    "UnexpectedMail",
    "WaitTimeout",
]
