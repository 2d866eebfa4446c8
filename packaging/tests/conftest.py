"""Options, fixtures and helpers of the tests of release files.

The tests install the files of a directory, `dist/` unless `--files DIR` names another one. Tests whose programs or files are
missing are skipped; with REQUIRE_PACKAGES=1 they fail. A test with the argument `target` runs for each Linux target, or for
those of `--targets`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import smtplib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from email.message import EmailMessage
from pathlib import Path

import pytest

PACKAGING = Path(__file__).resolve().parent.parent
ROOT = PACKAGING.parent
sys.path.insert(0, str(PACKAGING))

from steps.release import LINUX_TARGETS, MACOS_TARGETS, WINDOWS_TARGETS, Release, Target  # noqa: E402

# The directory of tools, which TOOLS_DIR may name.
TOOLS = Release(out=ROOT / "dist", targets=[]).tools
# The server would take these variables for its settings.
for variable in [name for name in os.environ if name.startswith("RESTANTE_")]:
    del os.environ[variable]

# How long a server may take to start or to end. An emulated processor is slow.
DEADLINE = 120
# The seconds after which a command that installs something is ended.
STEP_LIMIT = 1800

# The ports of servers, below those that the system gives to other connections. Each process of pytest-xdist has its own, and two
# runs start at different ones.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = itertools.islice(itertools.cycle(range(20_000 + 1_000 * WORKER, 21_000 + 1_000 * WORKER)), os.getpid() * 7 % 1_000, None)


def pytest_addoption(parser):
    parser.addoption("--files", type=Path, default=ROOT / "dist", help="the directory with the files to test")
    parser.addoption("--targets", default=",".join(LINUX_TARGETS), help="the targets to test, separated by commas")


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        targets = [Target(triple) for triple in metafunc.config.getoption("--targets").split(",")]
        metafunc.parametrize("target", targets, ids=str, scope="session")


def pytest_collection_modifyitems(items):
    # The tests that take longest come first, so that the processes of pytest-xdist end at about the same time.
    items.sort(key=lambda item: item.path.name != "test_readme.py")


@pytest.fixture(scope="session")
def dist(request) -> Path:
    """The directory with the files of the release."""
    directory = request.config.getoption("--files").resolve()
    if not directory.is_dir():
        missing(f"there is no {directory}: run packaging/release")
    return directory


@pytest.fixture(scope="session")
def version() -> str:
    """The version of the release."""
    return Release(out=ROOT / "dist", targets=[]).version


@pytest.fixture(scope="session")
def system() -> Path:
    """An installed Debian, which tests copy. It is kept for the next run."""
    if os.geteuid() != 0:
        missing("only root can install a Debian system")
    directory = Release(out=ROOT / "dist", targets=[]).work / "debian-bookworm"
    # Written last: it shows that the system is complete.
    complete = directory / "complete"
    with exclusive(directory.with_suffix(".lock")):
        if not complete.exists():
            shutil.rmtree(directory, ignore_errors=True)
            # debootstrap mounts /proc in the new system. The mount ends with the namespace.
            command = ["unshare", "--mount", require("debootstrap"), "--variant=minbase", "bookworm", str(directory / "root")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=STEP_LIMIT)
            complete.touch()
    return directory / "root"


@pytest.fixture
def root(target, system, tmp_path):
    """A fresh copy of the system, which is deleted after the test."""
    if not target.runs_here:
        pytest.skip(f"this machine cannot run a system for {target.arch}")
    copy = tmp_path / "root"
    command = ["cp", "--archive", "--one-file-system", "--reflink=auto", str(system), str(copy)]
    subprocess.run(command, check=True, timeout=STEP_LIMIT)
    yield copy
    shutil.rmtree(copy)


@contextlib.contextmanager
def exclusive(path: Path):
    """Waits until no other process of pytest-xdist holds this lock."""
    # Windows has no such locks. Only tests for Linux use them.
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def missing(reason: str):
    """Skips the test because something is missing; fails if REQUIRE_PACKAGES is set."""
    if os.environ.get("REQUIRE_PACKAGES"):
        pytest.fail(f"{reason} (REQUIRE_PACKAGES is set)", pytrace=False)
    pytest.skip(reason)


def require(program: str) -> str:
    """Returns the path of a program that the test needs."""
    path = shutil.which(program)
    if path is None:
        missing(f"{program} is not installed")
    return path


def artefact(dist: Path, name: str) -> Path:
    """Returns the file or directory of the release with this name."""
    path = dist / name
    if not path.exists():
        missing(f"{name} is not in {dist}")
    return path


def emulator(target: Target) -> list[str]:
    """Returns the command before that of a program for this target: an emulator if it is for another processor or system."""
    if target.runs_here:
        return []
    if target.is_windows:
        if shutil.which("wine"):
            return ["wine"]
        pytest.skip("Wine is not installed")
    for name in (f"qemu-{target.arch}-static", f"qemu-{target.arch}"):
        if shutil.which(name):
            return [name]
    missing(f"qemu-{target.arch} is not installed")


def target_of_this_machine() -> Target:
    """Returns the target whose programs run here."""
    for triple in (*LINUX_TARGETS, *MACOS_TARGETS, *WINDOWS_TARGETS):
        if Target(triple).runs_here:
            return Target(triple)
    pytest.skip("there is no program for this machine")


def free_ports(count: int) -> list[int]:
    """Returns ports of the loopback interface that are free now, each of them once. Other tests get other ports."""
    return list(itertools.islice(filter(is_free, PORTS), count))


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def get(url: str) -> bytes:
    """Returns the body of a response with status 200."""
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read()


@contextlib.contextmanager
def running_server(command: list, env: dict[str, str] | None = None, **options):
    """Starts a server on free ports, waits until it is ready, and returns its SMTP port and its URL. At the end it is asked
    to end, and must exit with 0. `options` are those of `subprocess.Popen`."""
    smtp, pop3, imap, web = free_ports(4)
    environment = dict(
        os.environ if env is None else env,
        RESTANTE_SMTP_ADDR=f"127.0.0.1:{smtp}",
        RESTANTE_POP3_ADDR=f"127.0.0.1:{pop3}",
        RESTANTE_IMAP_ADDR=f"127.0.0.1:{imap}",
        RESTANTE_WEB_ADDR=f"127.0.0.1:{web}",
    )
    url = f"http://127.0.0.1:{web}"
    server = subprocess.Popen([str(part) for part in command], env=environment, **options)
    try:
        wait_until_ready(url, server)
        yield smtp, url
        server.send_signal(signal.SIGTERM)
        assert server.wait(DEADLINE) == 0
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def wait_until_ready(url: str, server: subprocess.Popen | None = None) -> None:
    """Waits until `/readyz` succeeds. Fails if the process ends before, or at the deadline."""
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            get(f"{url}/readyz")
            return
        except (urllib.error.URLError, OSError) as error:
            assert server is None or server.poll() is None, f"the server ended with status {server.returncode}"
            assert time.monotonic() < deadline, f"the server is not ready: {error}"
            time.sleep(0.05)


def send_and_read(smtp: int, url: str) -> None:
    """Sends a message by SMTP and reads it by REST."""
    message = EmailMessage()
    message["From"] = "shop@example.org"
    message["To"] = "anna@example.org"
    message["Subject"] = "Your order"
    message.set_content("It is on its way.\n")
    with smtplib.SMTP("127.0.0.1", smtp, timeout=30) as client:
        client.send_message(message)
    received = json.loads(get(f"{url}/api/v1/mailbox/anna/latest"))
    assert received["subject"] == "Your order"
    assert received["body"]["text"].strip() == "It is on its way."


def mail_in_mail_out(command: list, env: dict[str, str] | None = None, **options) -> None:
    """Starts a server, sends a message, reads it, and ends the server."""
    with running_server(command, env, **options) as (smtp, url):
        send_and_read(smtp, url)

