"""The exceptions of this package."""

from __future__ import annotations

from typing import Any, Sequence

#: The number of log lines in the text of an error.
LOG_LINES = 30


class RestanteError(Exception):
    """The request failed. The text is the error message of the server, or the reason why there was no response.

    ``status`` is the HTTP status, or ``None`` if there was no response.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class NotFound(RestanteError):
    """The message does not exist, or does not contain what was requested."""


class Refused(RestanteError):
    """The credentials are missing or wrong, or do not allow the request."""


class WaitTimeout(RestanteError, TimeoutError):
    """The expected messages did not arrive in time. ``messages`` are those that did."""

    def __init__(self, text: str, messages: Sequence[Any] = ()) -> None:
        super().__init__(text, 408)
        self.messages = list(messages)


class UnexpectedMail(RestanteError, AssertionError):
    """A message arrived although none was expected. ``messages`` are those that arrived."""

    def __init__(self, text: str, messages: Sequence[Any] = ()) -> None:
        super().__init__(text, 409)
        self.messages = list(messages)


class StartError(RestanteError):
    """A server could not be started. ``log`` is its log; the end of it is in the text."""

    def __init__(self, text: str, log: str = "") -> None:
        end = "\n".join(log.splitlines()[-LOG_LINES:])
        super().__init__(f"{text} The end of its log:\n{end}" if end else text)
        self.log = log
