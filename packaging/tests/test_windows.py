"""The files for Windows: the archive, the wheel and the npm package contain the program, and it works. On Linux, Wine runs the
program. On Windows, the packages are also installed with pip and npm."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import DEADLINE, artefact, emulator, free_ports, get, require, send_and_read, wait_until_ready
from steps.npm import platform_of
from steps.pypi import platform_tags, python_version
from steps.release import COMPLETIONS, SOURCE_DOCUMENTS, WINDOWS_TARGETS, Target

TARGET = Target(WINDOWS_TARGETS[0])
on_windows = pytest.mark.skipif(os.name != "nt", reason="pip and npm install the program for Windows only on Windows")


@pytest.fixture(scope="module")
def unpacked(request, dist, version, tmp_path_factory) -> Path:
    """The directory of the unpacked archive."""
    name = f"restante-{version}-{TARGET}.zip"
    if TARGET.triple not in request.config.getoption("--targets") and not (dist / name).exists():
        pytest.skip(f"{name} is not in {dist}")
    path = artefact(dist, name)
    directory = tmp_path_factory.mktemp("archive")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(directory)
    return directory / path.stem


@pytest.fixture(scope="module")
def command(unpacked) -> list[str]:
    """The command that runs the program."""
    before = emulator(TARGET)
    if before:
        add_missing_library(unpacked)
    return [*before, str(unpacked / TARGET.program)]


def add_missing_library(directory: Path) -> None:
    """Adds a library of Windows that Wine before version 9 does not have. It has the random numbers of the system."""
    source = directory / "bcryptprimitives.c"
    source.write_text("""
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, (ULONG)size); }
""")
    command = [require("x86_64-w64-mingw32-gcc"), "-shared", "-o", source.with_suffix(".dll"), source, "-ladvapi32"]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def variables(tmp_path_factory) -> dict[str, str]:
    """The variables of the program. Wine keeps its settings in a directory of their own and logs nothing."""
    return dict(os.environ, WINEPREFIX=str(tmp_path_factory.mktemp("wine")), WINEDEBUG="-all")


@contextlib.contextmanager
def running_server(command: list[str], variables: dict[str, str]):
    """Starts a server that ends with its standard input. Returns its SMTP port and its URL. It must exit with 0."""
    smtp, web = free_ports(2)
    flags = [f"--smtp-addr=127.0.0.1:{smtp}", f"--web-addr=127.0.0.1:{web}", "--pop3-addr=", "--imap-addr=", "--stopwithstdin"]
    server = subprocess.Popen([*command, *flags], env=variables, stdin=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{web}"
        wait_until_ready(url, server)
        yield smtp, url
        server.stdin.close()
        assert server.wait(DEADLINE) == 0
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def test_the_archive_contains_the_documents(unpacked):
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {"restante.exe", *SOURCE_DOCUMENTS, *COMPLETIONS.values(), "man/restante.1"} <= files


def test_the_program_has_the_version_of_the_archive(command, variables, version):
    output = subprocess.run([*command, "--version"], env=variables, check=True, capture_output=True, text=True, timeout=DEADLINE).stdout
    assert output.split()[:2] == ["restante", version]


def test_the_program_receives_and_returns_a_message(command, variables):
    with running_server(command, variables) as (smtp, url):
        send_and_read(smtp, url)


def test_the_program_keeps_messages_on_disk(command, variables, tmp_path):
    command = [*command, "--data", str(tmp_path / "mail")]
    with running_server(command, variables) as (smtp, url):
        send_and_read(smtp, url)
    with running_server(command, variables) as (_, url):
        assert json.loads(get(f"{url}/api/v1/mailbox/anna/latest"))["subject"] == "Your order"


def test_the_packages_contain_the_program_of_the_archive(unpacked, dist, version):
    program = (unpacked / TARGET.program).read_bytes()
    number = python_version(version)
    with zipfile.ZipFile(artefact(dist, f"pypi/restante_server-{number}-py3-none-{'.'.join(platform_tags(TARGET))}.whl")) as wheel:
        assert wheel.read(f"restante_server-{number}.data/scripts/{TARGET.program}") == program
    with tarfile.open(artefact(dist, f"npm/restante-{platform_of(TARGET)}-{version}.tgz")) as package:
        assert package.extractfile(f"package/bin/{TARGET.program}").read() == program


@on_windows
def test_pip_installs_the_program_and_the_client(unpacked, dist, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "Scripts" / "python.exe"
    pip = [python, "-m", "pip", "install", "--no-index", "--find-links", dist / "pypi", "restante[server]"]
    subprocess.run(pip, check=True)
    code = """
import smtplib, restante
with restante.server() as r:
    with smtplib.SMTP(*r.smtp) as smtp:
        smtp.sendmail("shop@example.org", ["anna@example.org"], "Subject: Your order\\r\\n\\r\\nx\\r\\n")
    print(r.mailbox("anna").wait().subject)
"""
    output = subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE).stdout
    assert output == "Your order\n"


@on_windows
def test_npm_installs_the_program_and_the_client(unpacked, dist, version, tmp_path):
    (tmp_path / "package.json").write_text('{"name": "project", "version": "1.0.0", "private": true, "type": "module"}\n')
    files = [dist / "npm" / f"{name}-{version}.tgz" for name in ("restante", f"restante-{platform_of(TARGET)}")]
    subprocess.run([require("npm"), "install", "--offline", "--no-audit", "--no-fund", *map(str, files)], cwd=tmp_path, check=True)
    (tmp_path / "module.js").write_text("""
import { start } from "restante/server";
const restante = await start();
await restante.mailbox("anna").inject({ from: "shop@example.org", subject: "Your order" });
console.log((await restante.mailbox("anna").waitForMessage()).subject);
await restante.stop();
""")
    command = [require("node"), "module.js"]
    output = subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE).stdout
    assert output == "Your order\n"
