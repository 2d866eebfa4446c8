"""Starts a server for tests, on free ports, and stops it.

The server stores mail in memory, listens only on loopback, and ends with this process: its standard input is a pipe, and it stops
when the pipe is closed.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
from typing import IO, Any, Iterator, Mapping, Sequence, Union

from .client import Restante
from .errors import LOG_LINES, StartError
from .transport import Transport

#: The maximum time for a server to start, in seconds.
START_TIMEOUT = 30.0
#: The maximum time for a server to stop, in seconds. It ends open sessions after 15 seconds.
STOP_TIMEOUT = 30.0
#: The number of log lines that are kept.
KEPT_LINES = 1000

#: The log lines in which a server reports its addresses. The one of HTTP comes last.
LISTENING = re.compile(r"\b((?:SMTP|LMTP|POP3|IMAP|HTTPS?)(?: with TLS)?) listening on tcp[46] \[?([0-9A-Fa-f.:]+?)\]?:(\d+)")
#: The addresses at which a server is reached that listens on all of them.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
#: The settings of the server, unless others are given.
DEFAULTS = {
    "smtp.addr": "127.0.0.1:0",
    "pop3.addr": "127.0.0.1:0",
    "imap.addr": "127.0.0.1:0",
    "web.addr": "127.0.0.1:0",
    # The server would load a script in the working directory.
    "lua.path": "",
}
#: The settings that this module needs to start and stop the server.
RESERVED = ("loglevel", "logfile", "stopwithstdin")

#: The value of a setting.
Setting = Union[str, int, float, bool, "os.PathLike[str]", Sequence[str]]


class Server(Restante):
    """A server that was started by :func:`start`, and its client. As a context manager, it stops the server at the end."""

    def __init__(
        self,
        process: subprocess.Popen[str],
        timeout: float,
        token: str | None,
        user: tuple[str, str] | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._process = process
        self._owner = os.getpid()
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        #: The address of each protocol as a pair of host and port: ``SMTP``, ``POP3``, ``IMAP``, ``HTTP``, and those that the
        #: settings add, such as ``LMTP`` and ``SMTP with TLS``.
        self.addresses: dict[str, tuple[str, int]] = {}
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read_log, args=(process.stderr,), daemon=True)
        self._reader.start()
        atexit.register(self.stop)
        if not self._started.wait(timeout):
            self._kill()
            raise StartError(f"The restante server did not start within {timeout:g} s.", self.log)
        scheme = next((name for name in ("HTTP", "HTTPS") if name in self.addresses), None)
        if scheme is None:
            self._kill()
            raise StartError(f"The restante server ended with status {process.returncode}.", self.log)
        host, port = self.addresses[scheme]
        host = f"[{host}]" if ":" in host else host
        # Not by the constructor of the client: variables of the environment have the credentials of another server.
        self._transport = Transport(f"{scheme.lower()}://{host}:{port}", token, user, tls)

    @property
    def smtp(self) -> tuple[str, int]:
        """The host and port for SMTP."""
        return self._address("SMTP", "smtp.addr")

    @property
    def pop3(self) -> tuple[str, int]:
        """The host and port for POP3."""
        return self._address("POP3", "pop3.addr")

    @property
    def imap(self) -> tuple[str, int]:
        """The host and port for IMAP."""
        return self._address("IMAP", "imap.addr")

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    @property
    def log(self) -> str:
        """The newest 1,000 lines of the log."""
        return "\n".join(list(self._lines))

    def stop(self) -> None:
        """Stops the server, and waits until it has ended. Does nothing if it has ended before."""
        if os.getpid() != self._owner:
            # A copy of this object in a forked process.
            return
        atexit.unregister(self.stop)
        if sys.platform != "win32":
            # A forked process has a copy of the pipe, so the server may not see the end of its standard input. The signal comes
            # first: after it, the end of standard input is not a second request, however late it is.
            self._process.terminate()
        # The end of its standard input stops the server.
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            pass
        self._kill()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, _type: Any, error: BaseException | None, _traceback: Any) -> None:
        self.stop()
        if error is not None and hasattr(error, "add_note"):
            error.add_note("Log of the restante server:\n" + "\n".join(list(self._lines)[-LOG_LINES:]))

    def _address(self, name: str, setting: str) -> tuple[str, int]:
        if name not in self.addresses:
            raise AttributeError(f"the server has no address for {name}: {setting} is empty")
        return self.addresses[name]

    def _read_log(self, log: IO[str]) -> None:
        """Reads the log until the server ends. A full pipe would block the server."""
        with log:
            for line in log:
                line = line.rstrip("\n")
                self._lines.append(line)
                found = None if self._started.is_set() else LISTENING.search(line)
                if found:
                    name, host, port = found.groups()
                    self.addresses.setdefault(name, (LOOPBACK.get(host, host), int(port)))
                    if name.startswith("HTTP"):
                        self._started.set()
        self._process.wait()
        self._started.set()

    def _kill(self) -> None:
        """Kills the process if it runs, and waits until the log has been read."""
        atexit.unregister(self.stop)
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        # A process that the server has started could keep the pipe open.
        self._reader.join(5)


def start(
    *,
    program: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    lua: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Setting] | None = None,
    timeout: float = START_TIMEOUT,
    token: str | None = None,
    user: tuple[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Server:
    """Starts a server on free ports of the loopback interface. Returns its client when it is ready; call ``stop()`` at the end.

    Messages are stored in memory, or in the directory ``data``. ``lua`` is a Lua script. ``settings`` are further settings by their
    names in ``docs/config.md``, such as ``{"smtp.maxrecipients": 5}``. Variables of the environment do not configure the server.
    ``token``, ``user`` and ``tls`` are for a client of a server whose settings require them.

    ``program`` is the restante program. By default it is the one in the variable ``RESTANTE_PROGRAM``, in the package
    ``restante-server``, or in ``PATH``. Raises :class:`StartError` if there is none, or if the server does not start: the text
    contains its log.
    """
    command = [find_program(program), *flags(data, lua, settings or {})]
    # Variables for other servers, or for this client, must not configure this server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RESTANTE_", "INBUCKET_"))}
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    # Ctrl-C in the terminal must stop the tests first and then, by stop(), the server.
    if sys.platform == "win32":
        options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
    else:
        options["start_new_session"] = True
    try:
        process = subprocess.Popen(command, env=environment, encoding="utf-8", errors="replace", **options)
    except OSError as error:
        raise StartError(f"Cannot run {command[0]}: {error}") from error
    return Server(process, timeout, token, user, tls)


@contextlib.contextmanager
def server(**options: Any) -> Iterator[Server]:
    """Runs a server for the duration of a ``with`` block, with the options of :func:`start`.

    If the block raises an exception, the end of the log is added to it as a note (Python 3.11 or newer).
    """
    with start(**options) as running:
        yield running


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """Returns the path of the restante program: this one, or that of the environment, of ``restante-server``, or of ``PATH``."""
    named = os.fspath(program) if program else os.environ.get("RESTANTE_PROGRAM")
    if named:
        return named
    found = packaged_program() or shutil.which("restante")
    if found is None:
        raise StartError(
            "The restante program is not installed. Install it with `pip install restante[server]`, put it into a directory of "
            "PATH, or set RESTANTE_PROGRAM to its path."
        )
    return found


def packaged_program() -> str | None:
    """Returns the path of the program in the package ``restante-server``, or ``None`` if that is not installed."""
    try:
        import restante_server
    except ImportError:
        return None
    try:
        return restante_server.binary()
    except FileNotFoundError:
        return None


def flags(data: Any, lua: Any, settings: Mapping[str, Setting]) -> list[str]:
    """Returns the command-line flags for the settings."""
    values: dict[str, Any] = {**DEFAULTS, **settings}
    for name in RESERVED:
        if name in settings and not (name == "loglevel" and settings[name] in ("info", "debug")):
            raise ValueError(f"the setting {name} cannot be changed: the server is started and stopped by it")
    if not values["web.addr"]:
        raise ValueError("the setting web.addr is empty: the client needs HTTP")
    addresses = ",".join(text_of(values.get(name, "")) for name in ("web.addr", "web.tlsaddr")).split(",")
    if all(address.strip().startswith("unix:") for address in addresses if address.strip()):
        address = text_of(values["web.addr"])
        raise ValueError(f'the setting web.addr = "{address}" has no TCP address: the client needs one, for example 127.0.0.1:0')
    for name, value in (("storage.path", data), ("lua.path", lua)):
        if value is not None:
            values[name] = value
    values = {"loglevel": "info", **values, "logfile": "stderr", "stopwithstdin": True}
    return [f"--{name.replace('.', '-')}={text_of(value)}" for name, value in values.items()]


def text_of(value: Any) -> str:
    """Returns the value of a setting as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
