"""Waits for messages in tests: a client for the Restante mail server.

    from restante import Restante

    box = Restante().mailbox("ann")
    sign_up("ann@example.org")
    mail = box.wait(match="subject:welcome")
    enter(mail.code())

``server()`` starts a server for a test:

    with restante.server() as r:
        sign_up("ann@example.org", smtp=r.smtp)
        enter(r.mailbox("ann").wait().code())
"""

from .client import Mailbox, Restante, Run
from .errors import NotFound, Refused, RestanteError, StartError, UnexpectedMail, WaitTimeout
from .message import (
    Attachment,
    Client,
    Code,
    Feature,
    HtmlCheck,
    Link,
    Message,
    MessageCopy,
    MessageEntry,
    Score,
    Summary,
    WholeMessage,
)
from .process import Server, server, start
from .relay import RelayEntry, RelayRecipient
from .webhook import WebhookEntry

__all__ = [
    "Attachment",
    "Client",
    "Code",
    "Feature",
    "HtmlCheck",
    "Link",
    "Mailbox",
    "Message",
    "MessageCopy",
    "MessageEntry",
    "NotFound",
    "Refused",
    "RelayEntry",
    "RelayRecipient",
    "Restante",
    "RestanteError",
    "Run",
    "Score",
    "Server",
    "StartError",
    "Summary",
    "UnexpectedMail",
    "WaitTimeout",
    "WebhookEntry",
    "WholeMessage",
    "server",
    "start",
]
