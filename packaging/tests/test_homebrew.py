"""The Homebrew formula: Ruby parses it, and its checksums and file names are those of the archives."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import artefact, require
from steps.checksums import digest


@pytest.fixture(scope="module")
def formula(dist) -> Path:
    return artefact(dist, "restante.rb")


def archives(formula: Path) -> list[tuple[str, str]]:
    """Returns the file names of the archives and their checksums."""
    return re.findall(r'url ".*/([^"/]+)"\s+sha256 "([0-9a-f]{64})"', formula.read_text())


def test_ruby_parses_the_formula(formula):
    subprocess.run([require("ruby"), "-c", str(formula)], check=True, stdout=subprocess.DEVNULL)


def test_the_checksums_are_those_of_the_archives(formula, dist):
    assert archives(formula)
    for name, checksum in archives(formula):
        assert digest(artefact(dist, name)) == checksum, name


def test_the_archives_contain_the_installed_files(formula, dist):
    installed = re.findall(r'\.install "([^"]+)"', formula.read_text())
    assert {"restante", "completions/restante.bash", "completions/_restante", "completions/restante.fish"} <= set(installed)
    for name, _ in archives(formula):
        with tarfile.open(artefact(dist, name)) as archive:
            files = {member.name.partition("/")[2] for member in archive.getmembers()}
        assert set(installed) <= files, name
        assert "man/restante.1" in files, name
