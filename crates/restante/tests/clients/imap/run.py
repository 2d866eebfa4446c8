#!/usr/bin/env python3
"""Runs IMAP clients against a server: run.py [--tls IMAPS_PORT SMTPS_PORT] HOST PORT SMTP_PORT HTTP_PORT [CLIENT]...

Every client gets a new user, for whom messages are delivered by SMTP. The client reads and changes them, and compares them with
their sources in the REST API. Without names all clients are run, except `rust` if --tls is missing.

Exits with 1 if a client has failed, and with 3 if none is installed. `install` next to this file downloads clients.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
import types

import batch
import messages
from tools import DOWNLOADS, HERE, TIMEOUT, NotInstalled, require, require_file

PASSWORD = "any-pass"


def python(script, *arguments):
    """Returns a function that runs a script with the packages of PyPI."""

    def run(server):
        program = require_file(DOWNLOADS / "python/bin/python", "python")
        call([program, "-B", HERE / "python" / script, *arguments], server)

    return run


def livetest(server):
    program = require_file(DOWNLOADS / "python/bin/python", "python")
    file = server.directory / "livetest.ini"
    login = f"username = {server.user}\npassword = {server.password}"
    file.write_text(f"[DEFAULT]\nhost = {server.host}\nport = {server.port}\n{login}\nssl = false\n")
    call([program, "-B", HERE / "python/livetest.py", file], server)


def imapflow(server):
    require_file(HERE / "node/node_modules/imapflow/package.json", "node")
    call([require("node"), HERE / "node/use_imapflow.mjs"], server)


def angus(server):
    file = require_file(DOWNLOADS / "classpath", "java")
    call([require("java"), "-cp", file.read_text().strip(), HERE / "java/UseAngus.java"], server)


def go_imap(server):
    call([require_file(DOWNLOADS / "go/use-go-imap", "go")], server)


def rust_imap(server):
    """Runs the tests of the crate `imap`. They have their own users, and need TLS."""
    programs = sorted(require_file(DOWNLOADS / "rust/programs", "rust").glob("*_integration-*"))
    assert server.imaps_port, "the tests of the crate imap need --tls"
    # They need SETQUOTA, ACL and QRESYNC.
    skipped = ["--skip", "acl_tests", "--skip", "quota", "--skip", "qresync"]
    for program in programs:
        call([program, *skipped], server)


CLIENTS = {
    "livetest": livetest,
    "rust": rust_imap,
    "imaplib": python("use_imaplib.py"),
    "imap_tools": python("use_imap_tools.py"),
    "imapflow": imapflow,
    "angus": angus,
    "go-imap": go_imap,
} | {name: getattr(batch, name) for name in ["curl", "mbsync", "offlineimap", "fetchmail", "getmail", "neomutt"]}


def call(command, server):
    """Runs a program. It gets the server and the user in environment variables."""
    variables = {
        "IMAP_HOST": server.host,
        "IMAP_PORT": server.port,
        "SMTP_PORT": server.smtp_port,
        "IMAP_USER": server.user,
        "IMAP_PASSWORD": server.password,
        # The server for which these tests were developed takes the user from the token.
        "IMAP_TOKEN": f"token-{server.user}",
        "IMAP_SOURCES": server.directory / "sources",
        # The names of the tests of the crate `imap`.
        "TEST_HOST": server.host,
        "TEST_IMAP_PORT": server.port,
        "TEST_IMAPS_PORT": server.imaps_port,
        "TEST_SMTPS_PORT": server.smtps_port,
        "NO_PROXY": "*",
    }
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    subprocess.run([str(part) for part in command], env=environment, cwd=server.directory, timeout=TIMEOUT, check=True)


@contextlib.contextmanager
def prepared(options, name):
    """Delivers the messages for a new user, and creates a directory with their sources."""
    user = f"{name.replace('_', '-')}-{time.time_ns() // 1_000_000:x}"
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        server = types.SimpleNamespace(**vars(options), user=user, password=PASSWORD, directory=directory)
        messages.deliver(server.host, server.smtp_port, user)
        server.sources = messages.sources(server.host, server.http_port, user)
        (directory / "sources").mkdir()
        for number, source in enumerate(server.sources, 1):
            (directory / "sources" / f"{number}.eml").write_bytes(source)
        yield server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls", nargs=2, type=int, default=[0, 0], metavar=("IMAPS_PORT", "SMTPS_PORT"))
    parser.add_argument("host")
    for port in ["port", "smtp_port", "http_port"]:
        parser.add_argument(port, type=int)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    options = parser.parse_args()
    options.imaps_port, options.smtps_port = options.tls
    names = options.clients or [name for name in CLIENTS if name != "rust" or options.imaps_port]
    missing, failed = [], []
    for name in names:
        start = time.monotonic()
        try:
            with prepared(options, name) as server:
                CLIENTS[name](server)
        except NotInstalled as error:
            print(f"-- {name}: {error}", flush=True)
            missing.append(name)
        except Exception as error:
            # The other clients are run too. A program that failed has written why.
            if not isinstance(error, subprocess.CalledProcessError):
                traceback.print_exc()
            print(f"-- {name}: FAILED", flush=True)
            failed.append(name)
        else:
            print(f"-- {name}: ok ({time.monotonic() - start:.1f} s)", flush=True)
    sys.exit(1 if failed else 3 if missing == names else 0)


if __name__ == "__main__":
    main()
