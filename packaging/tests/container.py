"""Runs an unpacked container image without a container engine, sends it a message, reads it, and ends it.

test_image.py starts this program in a network namespace of its own, in which the image can use its own ports:

    unshare --user --map-root-user --net python3 container.py SPECIFICATION

SPECIFICATION is a JSON file with the root directory of the image, its `config`, the directory of its volumes, its ports for
SMTP and HTTP, the paths to request, and the program of an emulator, if one is needed. Bubblewrap provides the rest of what a
container engine does: the user of the image, a read-only root, only the variables of the image, and the first process of a
process namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import smtplib
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from email.message import EmailMessage
from pathlib import Path

# How long the server may take to start or to end. An emulated processor is slow.
DEADLINE = 120


def main() -> None:
    specification = json.loads(Path(sys.argv[1]).read_text())
    container = Container(specification)
    enable_loopback()
    with container.running():
        send(specification["smtp"], specification["subject"])
        assert specification["subject"] in container.request("GET", specification["messages"])
        for method, path in specification["requests"]:
            container.request(method, path)
    # The volumes keep the messages.
    with container.running():
        assert specification["subject"] in container.request("GET", specification["messages"])


class Container:
    def __init__(self, specification: dict):
        self.specification = specification
        self.config = specification["config"]

    def request(self, method: str, path: str) -> str:
        """Sends a request, which must succeed."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.specification['http']}{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()

    def command(self, program: list[str], *options: str) -> list[str]:
        """Returns the command that runs a program of the image as the container engine does."""
        uid, gid = self.config["User"].split(":")
        command = ["bwrap", "--unshare-user", "--uid", uid, "--gid", gid, "--unshare-ipc", "--unshare-uts", "--hostname", "container"]
        command += ["--ro-bind", self.specification["root"], "/", "--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--clearenv"]
        for path in self.config["Volumes"]:
            command += ["--bind", self.specification["volumes"] + path, path]
        for variable in [*self.config.get("Env", []), *self.specification["variables"]]:
            command += ["--setenv", *variable.split("=", 1)]
        for path in self.specification["emulator"]:
            command += ["--ro-bind", path, "/emulator"]
        emulator = ["/emulator"] if self.specification["emulator"] else []
        return [*command, *options, "--", *emulator, *program]

    @contextlib.contextmanager
    def running(self):
        """Starts the entry point, waits until the health check succeeds, and ends it as a container engine does."""
        reader, writer = os.pipe()
        options = ["--unshare-pid", "--as-pid-1", "--die-with-parent", "--info-fd", str(writer)]
        server = subprocess.Popen(self.command(self.config["Entrypoint"], *options), pass_fds=[writer])
        os.close(writer)
        try:
            with os.fdopen(reader) as info:
                pid = json.load(info)["child-pid"]
            self.wait_until_healthy(server)
            yield
            os.kill(pid, signal.SIGTERM)
            status = server.wait(DEADLINE)
            assert status == 0, f"the server ended with status {status}"
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()

    def wait_until_healthy(self, server: subprocess.Popen) -> None:
        kind, *check = self.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        deadline = time.monotonic() + DEADLINE
        while (result := subprocess.run(self.command(check), capture_output=True, text=True)).returncode != 0:
            assert server.poll() is None, f"the server ended with status {server.returncode}"
            assert time.monotonic() < deadline, f"the server is not healthy: {result.stdout}{result.stderr}"
            time.sleep(0.1)


def send(port: int, subject: str) -> None:
    message = EmailMessage()
    message["From"] = "shop@example.org"
    message["To"] = "anna@example.org"
    message["Subject"] = subject
    message.set_content("It is on its way.\n")
    with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
        client.send_message(message)


def enable_loopback() -> None:
    """Sets the flag IFF_UP of the loopback interface, which a new network namespace does not have."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, get_flags, request))[1]
        fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", flags | up))


if __name__ == "__main__":
    main()
