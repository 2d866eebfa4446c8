"""Fixtures for pytest: a server, and a separate mailbox for every test.

``restante`` is the client. It uses the server of ``--restante-server`` or ``RESTANTE_SERVER``. With ``--restante-program``
(or ``RESTANTE_PROGRAM``) it starts its own server for the run. ``restante_smtp`` is the SMTP address of that server, as a
pair of host and port. ``mailbox`` is a mailbox that no other test uses, with an ``address`` to send to; it is emptied after
the test. ``--restante-address`` sets the pattern of these addresses.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import uuid
from typing import IO, Any, Iterator
from urllib.parse import urlsplit

import pytest

from .client import Mailbox, Restante
from .errors import Refused

#: The log lines in which a server reports its ports.
LISTENING = re.compile(r"(SMTP|HTTP) listening on tcp4 \S*?:(\d+)")
#: The maximum time for the server to start, in seconds.
START_TIMEOUT = 30.0


class OwnMailbox(Mailbox):
    """The mailbox of one test. It is identified by its address, so it works with every mailbox naming of the server."""

    def __init__(self, restante: Restante, address: str) -> None:
        super().__init__(restante._transport, address)
        #: An address whose messages are stored in this mailbox.
        self.address = address


def pytest_addoption(parser: Any) -> None:
    """Adds the options."""
    group = parser.getgroup("restante", "mail")
    group.addoption("--restante-server", metavar="URL", help="the URL of the Restante server")
    group.addoption("--restante-program", metavar="FILE", help="the restante program to start for this run")
    group.addoption(
        "--restante-address",
        metavar="PATTERN",
        default="test-*@example.org",
        help="the pattern of test addresses, with * for the part that differs [default: %(default)s]",
    )


@pytest.fixture(scope="session")
def restante_server(request: Any) -> Iterator[tuple[str | None, tuple[str, int] | None]]:
    """The URL of the server, and its SMTP address if it was started here."""
    url = request.config.getoption("--restante-server")
    program = request.config.getoption("--restante-program") or os.environ.get("RESTANTE_PROGRAM")
    if url or not program:
        yield url, None
        return
    flags = ["--smtp-addr=127.0.0.1:0", "--web-addr=127.0.0.1:0", "--pop3-addr=", "--loglevel=info", "--logfile=stderr"]
    # Variables for other servers, or for this client, must not configure this server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RESTANTE_", "INBUCKET_"))}
    process = subprocess.Popen([program, *flags], env=environment, stderr=subprocess.PIPE, text=True)
    # A server that does not start in time is killed, which ends its log.
    start_timer = threading.Timer(START_TIMEOUT, process.kill)
    start_timer.start()
    try:
        ports = read_ports(process.stderr)
        start_timer.cancel()
        yield f"http://127.0.0.1:{ports['HTTP']}", ("127.0.0.1", ports["SMTP"])
    finally:
        start_timer.cancel()
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="session")
def restante(restante_server: Any) -> Restante:
    """The client."""
    return Restante(restante_server[0])


@pytest.fixture(scope="session")
def restante_smtp(restante: Restante, restante_server: Any) -> tuple[str, int]:
    """The host and port for SMTP."""
    if restante_server[1] is not None:
        return restante_server[1]
    port = restante.about()["smtp"]["port"]
    return (urlsplit(restante.url).hostname or "localhost", port)


@pytest.fixture
def mailbox(restante: Restante, request: Any) -> Iterator[OwnMailbox]:
    """A mailbox that no other test uses."""
    pattern = request.config.getoption("--restante-address")
    box = OwnMailbox(restante, pattern.replace("*", uuid.uuid4().hex[:16]))
    yield box
    try:
        box.purge()
    except Refused:
        # A read-only token cannot delete messages. The server removes them by retention.
        pass


def read_ports(log: IO[str]) -> dict[str, int]:
    """Reads the ports from the log, and then drains the log in a background thread."""
    ports: dict[str, int] = {}
    lines = []
    for line in log:
        lines.append(line)
        found = LISTENING.search(line)
        if found:
            ports[found[1]] = int(found[2])
        if len(ports) == 2:
            # A full pipe would block the server.
            threading.Thread(target=lambda: [None for _ in log], daemon=True).start()
            return ports
    raise RuntimeError("the restante program did not start:\n" + "".join(lines))
