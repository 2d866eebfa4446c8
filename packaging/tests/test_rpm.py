"""The RPM package: its files, owners and scripts, and the program in it. The tests need no system with rpm."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import artefact, emulator, mail_in_mail_out, require
from steps import rpm


@pytest.fixture(scope="module")
def package(target, dist, version) -> Path:
    return artefact(dist, rpm.name(version, target))


def query(package: Path, *options: str) -> str:
    command = [require("rpm"), "--query", "--nosignature", *options, "--package", str(package)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_package_names_its_version_and_processor(package, target, version):
    assert query(package, "--queryformat", "%{NAME} %{VERSION} %{ARCH}") == f"restante {version.replace('-', '~')} {target.arch}"


def test_files_have_owners_and_permissions(package):
    listing = query(package, "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]").splitlines()
    assert "-rwxr-xr-x root root /usr/bin/restante" in listing
    assert "-rw-r----- root restante /etc/restante/restante.toml" in listing
    assert "-rw-r--r-- root root /usr/lib/systemd/system/restante.service" in listing
    assert "-rw-r--r-- root root /usr/share/man/man1/restante.1.gz" in listing
    assert query(package, "--configfiles").split() == ["/etc/restante/restante.toml"]


def test_the_scripts_are_valid_shell_scripts(package):
    for tag in ("PREIN", "POSTIN", "PREUN", "POSTUN"):
        script = query(package, "--queryformat", f"%{{{tag}}}")
        assert "restante" in script, tag
        subprocess.run(["sh", "-n"], input=script, check=True, text=True)


def test_the_program_receives_and_returns_a_message(package, target, tmp_path):
    with subprocess.Popen([require("rpm2cpio"), str(package)], stdout=subprocess.PIPE) as archive:
        command = [require("cpio"), "--extract", "--make-directories", "--quiet"]
        subprocess.run(command, stdin=archive.stdout, cwd=tmp_path, check=True)
    program = [*emulator(target), tmp_path / "usr/bin/restante"]
    mail_in_mail_out([*program, "--data", tmp_path / "mail"])
