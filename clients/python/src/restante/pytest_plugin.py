"""Fixtures for pytest: a server, and a separate mailbox for every test.

``restante`` is the client. It uses the first of these servers:

1. the one of ``--restante-server``,
2. one that is started for the run, if ``--restante-program`` or ``RESTANTE_PROGRAM`` names the program,
3. the one of ``RESTANTE_SERVER``,
4. one that is started for the run, if the package ``restante-server`` is installed (``pip install restante[server]``),
5. ``http://localhost:9000``.

``restante_smtp`` is the SMTP address of that server, as a pair of host and port. ``mailbox`` is a mailbox that no other test uses,
with an ``address`` to send to; it is emptied after the test. ``--restante-address`` sets the pattern of these addresses. Override
``restante_options`` to change the options of ``restante.start`` for a server that is started.

With ``--restante-lease``, all of them use a leased run, so that no other test run on the same server sees this mail. It is
``restante_run``. Each worker of pytest-xdist leases its own.
"""

from __future__ import annotations

import os
import uuid
from typing import Any, Iterator
from urllib.parse import urlsplit

import pytest

from .client import Mailbox, Restante, Run
from .errors import LOG_LINES, Refused
from .process import Server, packaged_program, start

#: The longest lifetime of a run. It usually ends with the tests.
LEASE_TIME = "24h"
#: The server that was started for this run.
SERVER: pytest.StashKey[Server] = pytest.StashKey()


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
    group.addoption("--restante-program", metavar="FILE", help="the restante program to start for this run, on free ports")
    group.addoption("--restante-lease", action="store_true", help="lease a run, whose mail no other test run sees")
    group.addoption(
        "--restante-address",
        metavar="PATTERN",
        help="the pattern of test addresses, with * for the part that differs [default: test-*@ and the domain of the leased run, "
        "or example.org]",
    )


@pytest.fixture(scope="session")
def restante_options() -> dict[str, Any]:
    """The options of ``restante.start`` for a server that is started for this run. Override it in your ``conftest.py``."""
    return {}


@pytest.fixture(scope="session")
def restante_server(request: Any, restante_options: dict[str, Any]) -> Iterator[Server | None]:
    """The server that was started for this run, or ``None`` if an existing server is used."""
    program = program_to_start(request.config)
    if program is None:
        yield None
        return
    with start(program=program, **restante_options) as server:
        request.config.stash[SERVER] = server
        yield server


@pytest.fixture(scope="session")
def restante_run(request: Any, restante_server: Server | None) -> Iterator[Run | None]:
    """The run that was leased for these tests, or ``None`` without ``--restante-lease``."""
    if not request.config.getoption("--restante-lease"):
        yield None
        return
    with (restante_server or Restante(request.config.getoption("--restante-server"))).lease(LEASE_TIME) as run:
        yield run


@pytest.fixture(scope="session")
def restante(request: Any, restante_server: Server | None, restante_run: Run | None) -> Restante:
    """The client."""
    return restante_run or restante_server or Restante(request.config.getoption("--restante-server"))


@pytest.fixture(scope="session")
def restante_smtp(restante: Restante, restante_server: Server | None) -> tuple[str, int]:
    """The host and port for SMTP."""
    if restante_server is not None:
        return restante_server.smtp
    port = restante.about()["smtp"]["port"]
    return (urlsplit(restante.url).hostname or "localhost", port)


@pytest.fixture
def mailbox(
    restante: Restante, restante_server: Server | None, restante_run: Run | None, request: Any
) -> Iterator[OwnMailbox]:
    """A mailbox that no other test uses."""
    # `restante run` sets the variable for the server that it has leased the run from.
    domain = os.environ.get("RESTANTE_DOMAIN") if restante_server is None else None
    domain = restante_run.domain if restante_run else domain or "example.org"
    pattern = request.config.getoption("--restante-address") or f"test-*@{domain}"
    box = OwnMailbox(restante, pattern.replace("*", uuid.uuid4().hex[:16]))
    yield box
    try:
        box.purge()
    except Refused:
        # A read-only token cannot delete messages. The server removes them by retention.
        pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any) -> Iterator[None]:
    """Adds the log of the server that was started to the report of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    server = item.config.stash.get(SERVER, None)
    if report.failed and server is not None and "restante_server" in getattr(item, "fixturenames", ()):
        report.sections.append(("Log of the restante server", "\n".join(server.log.splitlines()[-LOG_LINES:])))


def program_to_start(config: Any) -> str | None:
    """Returns the program to start for this run, or ``None`` if there is a server, or may be one on this machine."""
    if config.getoption("--restante-server"):
        return None
    program = config.getoption("--restante-program") or os.environ.get("RESTANTE_PROGRAM")
    if program or os.environ.get("RESTANTE_SERVER"):
        return program or None
    return packaged_program()
