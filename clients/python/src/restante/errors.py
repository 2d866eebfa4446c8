"""What can go wrong, as a test wants to tell it apart."""

from __future__ import annotations

from typing import Any, Sequence


class RestanteError(Exception):
    """The server did not do what it was asked for; the text is its own sentence about it.

    ``status`` is the status of its answer, or ``None`` when there was no answer.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class NotFound(RestanteError):
    """There is no such message."""


class Refused(RestanteError):
    """The credentials are missing or wrong, or do not allow this."""


class WaitTimeout(RestanteError, TimeoutError):
    """The mail did not come in time. ``messages`` are those of the expected ones that did."""

    def __init__(self, text: str, messages: Sequence[Any] = ()) -> None:
        super().__init__(text, 408)
        self.messages = list(messages)


class UnexpectedMail(RestanteError, AssertionError):
    """Mail came although none was expected; ``messages`` are what came."""

    def __init__(self, text: str, messages: Sequence[Any] = ()) -> None:
        super().__init__(text, 409)
        self.messages = list(messages)
