"""Sends HTTP requests and maps error responses to exceptions."""

from __future__ import annotations

import base64
import json
import re
import ssl
from http.client import HTTPException
from typing import Any, Mapping
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from .errors import NotFound, Refused, RestanteError

#: The timeout of a request that does not wait for messages, in seconds.
REQUEST_TIMEOUT = 30.0
#: The end of the URL of a project.
PROJECT_PATH = re.compile(r"/p/[a-z0-9-]+$")


class Transport:
    """Sends requests to one server, with its credentials."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        user: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url, url_user = split_credentials(url.rstrip("/"))
        user = user or url_user
        self._headers = {}
        self._tls = tls
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user is not None:
            credentials = base64.b64encode(":".join(user).encode()).decode()
            self._headers["Authorization"] = f"Basic {credentials}"

    def for_run(self, token: str) -> Transport:
        """Returns a transport for the leased run with this token. The run is a project of its own, so the path of another project is
        removed from the URL."""
        return Transport(PROJECT_PATH.sub("", self.url), token, tls=self._tls)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = REQUEST_TIMEOUT,
    ) -> tuple[int, bytes]:
        """Sends a request. Returns the status and the body of the response, also for error statuses."""
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{path}" + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(url, method=method, headers=headers, data=body)
        try:
            with urlopen(request, timeout=timeout, context=self._tls) as response:
                return response.status, response.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            raise RestanteError(f"the request to {self.url} failed: {reason}") from error

    def bytes(self, method: str, path: str, **options: Any) -> bytes:
        """Sends a request. Returns the body of a successful response, otherwise raises."""
        status, body = self.request(method, path, **options)
        if status >= 400:
            raise problem(status, body)
        return body

    def json(self, method: str, path: str, **options: Any) -> Any:
        """Sends a request. Returns the JSON of a successful response, otherwise raises."""
        body = self.bytes(method, path, **options)
        try:
            return json.loads(body) if body else None
        except ValueError as error:
            raise RestanteError(f"the response of {self.url} is not JSON: check that it is a Restante server") from error


def split_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Splits user and password from a URL, so that they do not appear in error messages."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, None
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, (unquote(parts.username), unquote(parts.password or ""))


def problem(status: int, body: bytes) -> RestanteError:
    """Returns the exception for an error response."""
    detail = details(body).get("detail") or f"the server responded with status {status}"
    if status == 404:
        return NotFound(detail, status)
    if status in (401, 403):
        return Refused(detail, status)
    return RestanteError(detail, status)


def details(body: bytes) -> dict[str, Any]:
    """Returns the fields of a problem document (RFC 9457), or an empty dictionary."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
