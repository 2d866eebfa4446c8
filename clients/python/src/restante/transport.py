"""HTTP: one request, one answer. What is asked and what the answers mean is known elsewhere."""

from __future__ import annotations

import base64
import json
import ssl
from http.client import HTTPException
from typing import Any, Mapping
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from .errors import NotFound, Refused, RestanteError

#: How long the server may take for an answer that it need not wait for, in seconds.
PATIENCE = 30.0


class Transport:
    """The way to one server, with the credentials for it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        user: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url, of_url = without_credentials(url.rstrip("/"))
        user = user or of_url
        self._headers = {}
        self._tls = tls
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            credentials = base64.b64encode(":".join(user).encode()).decode()
            self._headers["Authorization"] = f"Basic {credentials}"

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        patience: float = PATIENCE,
    ) -> tuple[int, bytes]:
        """Sends a request; the status and the body of the answer, whatever they are."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{path}" + (f"?{urlencode(given)}" if given else "")
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(url, method=method, headers=headers, data=body)
        try:
            with urlopen(request, timeout=patience, context=self._tls) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            raise RestanteError(f"{self.url} does not answer: {reason}") from error

    def bytes(self, method: str, path: str, **options: Any) -> bytes:
        """Sends a request; the body of a successful answer."""
        status, body = self.request(method, path, **options)
        if status >= 400:
            raise problem(status, body)
        return body

    def json(self, method: str, path: str, **options: Any) -> Any:
        """Sends a request; what a successful answer says."""
        body = self.bytes(method, path, **options)
        try:
            return json.loads(body) if body else None
        except ValueError as error:
            raise RestanteError(f"{self.url} answers with something that is no JSON: is it a Restante server?") from error


def without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """A URL, and the user and password that it holds: these are not for the eyes of those who read error messages."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, None
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, (unquote(parts.username), unquote(parts.password or ""))


def problem(status: int, body: bytes) -> RestanteError:
    """The error that an answer means."""
    detail = details(body).get("detail") or f"the server answered {status}"
    if status == 404:
        return NotFound(detail, status)
    if status in (401, 403):
        return Refused(detail, status)
    return RestanteError(detail, status)


def details(body: bytes) -> dict[str, Any]:
    """What a problem says about itself (RFC 9457); nothing when it is none."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
