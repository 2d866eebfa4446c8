"""Fixtures for pytest: a server, and a mailbox of its own for every test.

``restante`` is the client. It talks to the server that ``--restante-server`` or ``RESTANTE_SERVER`` names; with
``--restante-program`` (or ``RESTANTE_PROGRAM``) it starts one of its own for the run. ``restante_smtp`` is where that
server takes mail, as a pair of host and port. ``mailbox`` is a mailbox that no other test has, with an ``address`` to
send to; it is emptied afterwards. ``--restante-address`` says what such addresses look like.
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

#: The words by which a server tells where it listens.
LISTENING = re.compile(r"(SMTP|HTTP) listening on tcp4 \S*?:(\d+)")
#: How long a server may take to start, in seconds.
START = 30.0


class OwnMailbox(Mailbox):
    """The mailbox of one test. Whatever the server names mailboxes after, it is that of the address."""

    def __init__(self, restante: Restante, address: str) -> None:
        super().__init__(restante._transport, address)
        #: An address whose mail comes here.
        self.address = address


def pytest_addoption(parser: Any) -> None:
    """Adds the options."""
    group = parser.getgroup("restante", "mail")
    group.addoption("--restante-server", metavar="URL", help="the Restante server that mail is sent to")
    group.addoption("--restante-program", metavar="FILE", help="a restante program to start for this run")
    group.addoption(
        "--restante-address",
        metavar="PATTERN",
        default="test-*@example.org",
        help="what the addresses of tests look like, with a star for what differs [default: %(default)s]",
    )


@pytest.fixture(scope="session")
def restante_server(request: Any) -> Iterator[tuple[str | None, tuple[str, int] | None]]:
    """The URL of the server, and where it takes mail if that is known."""
    url = request.config.getoption("--restante-server")
    program = request.config.getoption("--restante-program") or os.environ.get("RESTANTE_PROGRAM")
    if url or not program:
        yield url, None
        return
    flags = ["--smtp-addr=127.0.0.1:0", "--web-addr=127.0.0.1:0", "--pop3-addr=", "--loglevel=info", "--logfile=stderr"]
    # What is set for other servers, or for this program, is not meant for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RESTANTE_", "INBUCKET_"))}
    process = subprocess.Popen([program, *flags], env=environment, stderr=subprocess.PIPE, text=True)
    # Who never says that it listens is ended, and with that its log.
    impatience = threading.Timer(START, process.kill)
    impatience.start()
    try:
        ports = listening(process.stderr)
        impatience.cancel()
        yield f"http://127.0.0.1:{ports['HTTP']}", ("127.0.0.1", ports["SMTP"])
    finally:
        impatience.cancel()
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
    """Where the server takes mail: host and port."""
    if restante_server[1] is not None:
        return restante_server[1]
    port = restante.about()["smtp"]["port"]
    return (urlsplit(restante.url).hostname or "localhost", port)


@pytest.fixture
def mailbox(restante: Restante, request: Any) -> Iterator[OwnMailbox]:
    """A mailbox that no other test has."""
    pattern = request.config.getoption("--restante-address")
    box = OwnMailbox(restante, pattern.replace("*", uuid.uuid4().hex[:16]))
    yield box
    try:
        box.purge()
    except Refused:
        # A token that may only read leaves it to the server to forget the mail.
        pass


def listening(log: IO[str]) -> dict[str, int]:
    """Reads the log until the server has said where it listens, and then lets it go on in the background."""
    ports: dict[str, int] = {}
    lines = []
    for line in log:
        lines.append(line)
        found = LISTENING.search(line)
        if found:
            ports[found[1]] = int(found[2])
        if len(ports) == 2:
            # A full pipe would stop the server.
            threading.Thread(target=lambda: [None for _ in log], daemon=True).start()
            return ports
    raise RuntimeError("the restante program did not start:\n" + "".join(lines))
