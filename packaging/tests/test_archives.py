"""The archives for Linux and macOS: they contain the program and its documents, and the program works."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import artefact, emulator, mail_in_mail_out, require
from steps.release import COMPLETIONS, SOURCE_DOCUMENTS


@pytest.fixture(scope="module")
def unpacked(target, dist, version, tmp_path_factory) -> Path:
    """The directory of an unpacked archive."""
    name = f"restante-{version}-{target}"
    archive = artefact(dist, f"{name}.tar.gz")
    directory = tmp_path_factory.mktemp("archive")
    with tarfile.open(archive) as files:
        files.extractall(directory)
    assert [path.name for path in directory.iterdir()] == [name]
    return directory / name


@pytest.fixture(scope="module")
def command(target, unpacked) -> list[str]:
    """The command that runs the program."""
    return [*emulator(target), str(unpacked / "restante")]


def test_the_program_receives_and_returns_a_message(command):
    mail_in_mail_out(command)


def test_the_program_keeps_messages_on_disk(command, tmp_path):
    mail_in_mail_out([*command, "--data", tmp_path / "mail"])


def test_the_program_runs_lua_scripts(command, tmp_path):
    script = tmp_path / "inbucket.lua"
    script.write_text('function inbucket.after.message_stored(message) print(message.subject) end\n')
    subprocess.run([*command, "script", "check", str(script)], check=True)


def test_the_program_has_the_version_of_the_archive(command, version):
    output = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True).stdout
    assert output.split()[:2] == ["restante", version]


def test_the_program_is_static(target, unpacked):
    if not target.is_linux:
        pytest.skip("programs for other systems use their libraries")
    # A program header with this type names the dynamic linker.
    interpreter = 3
    program = (unpacked / "restante").read_bytes()
    assert program[:6] == b"\x7fELF\x02\x01", "an ELF file with 64 bits, little-endian"
    (offset,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, offset + index * size)[0] for index in range(count)]
    assert kinds
    assert interpreter not in kinds


def test_the_archive_contains_the_documents(unpacked):
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {"restante", *SOURCE_DOCUMENTS, *COMPLETIONS.values(), "man/restante.1", "man/restante-send.1"} <= files
    assert os.access(unpacked / "restante", os.X_OK)


def test_the_archive_has_no_owner_and_one_time(target, dist, version):
    archive = artefact(dist, f"restante-{version}-{target}.tar.gz")
    with tarfile.open(archive) as files:
        members = files.getmembers()
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert len({member.mtime for member in members}) == 1
    assert [member.name for member in members] == sorted(member.name for member in members)


@pytest.mark.skipif(platform.system() != "Linux", reason="man has other options on other systems")
def test_man_renders_the_pages(unpacked):
    man = require("man")
    for page in sorted((unpacked / "man").iterdir()):
        output = subprocess.run(
            [man, "--warnings", "-l", str(page)],
            check=True,
            capture_output=True,
            text=True,
            env=dict(os.environ, MANPAGER="cat", MANWIDTH="80"),
        )
        assert "NAME" in output.stdout
        assert output.stderr == "", page.name


@pytest.mark.parametrize("shell, options", [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_the_shells_parse_the_completions(unpacked, shell, options):
    subprocess.run([require(shell), *options, str(unpacked / COMPLETIONS[shell])], check=True)
