"""Commands in the installed system of the fixture `root`. systemd does not run there, so the tests start the server with the
command of the unit, as its user."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conftest import STEP_LIMIT, get, running_server, send_and_read

SETTINGS = "/etc/restante/restante.toml"
UNIT = "/usr/lib/systemd/system/restante.service"


def in_root(root: Path, *command: str) -> str:
    """Runs a command in the system and returns its output."""
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    return run(["chroot", root, *command], env=environment)


def run(command: list, **options) -> str:
    """Runs a command, which must succeed, and returns its output."""
    result = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_LIMIT,
        **options,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def file(root: Path, path: str) -> Path:
    """Returns where a file of the system is on this machine."""
    return root / path.lstrip("/")


def permissions(root: Path, path: str) -> str:
    return in_root(root, "stat", "--format=%U:%G %a", path).strip()


def unit_setting(root: Path, name: str) -> str:
    """Returns a setting of the unit."""
    (line,) = [line for line in file(root, UNIT).read_text().splitlines() if line.startswith(f"{name}=")]
    return line.split("=", 1)[1]


def service(root: Path):
    """Starts the server as the unit does."""
    user = f"--userspec={unit_setting(root, 'User')}:{unit_setting(root, 'Group')}"
    return running_server(["chroot", user, root, *unit_setting(root, "ExecStart").split()])


def receive_mail(root: Path) -> None:
    """Starts the server, sends a message and reads it."""
    with service(root) as (smtp, url):
        send_and_read(smtp, url)


def assert_mail_is_stored(root: Path) -> None:
    """Starts the server and reads the message of `receive_mail`."""
    with service(root) as (_, url):
        assert json.loads(get(f"{url}/api/v1/mailbox/anna/latest"))["subject"] == "Your order"


def assert_is_installed(root: Path) -> None:
    """Checks the user, and the owners and permissions of files."""
    assert permissions(root, "/etc/restante") == "root:restante 750"
    assert permissions(root, SETTINGS) == "root:restante 640"
    assert permissions(root, "/var/lib/restante") == "restante:restante 700"
    assert permissions(root, "/usr/bin/restante") == "root:root 755"
    user = in_root(root, "getent", "passwd", "restante").strip().split(":")
    assert user[5] == "/var/lib/restante"
    assert user[6].endswith("/nologin")
    in_root(root, "restante", "config", "check", "--config", SETTINGS)
