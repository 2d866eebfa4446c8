"""The Homebrew formula: its checksums are those of the archives, and it installs them. `formula.rb` stands in for Homebrew."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import artefact, mail_in_mail_out, require
from steps.checksums import digest
from steps.homebrew import PLATFORMS

STAND_IN = Path(__file__).with_name("formula.rb")


@pytest.fixture(scope="module")
def formula(dist) -> Path:
    return artefact(dist, "restante.rb")


def test_the_checksums_are_those_of_the_archives(formula, dist):
    archives = re.findall(r'url ".*/([^"/]+)"\s+sha256 "([0-9a-f]{64})"', formula.read_text())
    assert archives
    for name, checksum in archives:
        assert digest(artefact(dist, name)) == checksum, name


def test_the_installed_program_receives_and_returns_a_message(formula, dist, version, target, tmp_path):
    if not target.runs_here:
        pytest.skip(f"this machine cannot run programs for {target.arch}")
    name = f"restante-{version}-{target}"
    with tarfile.open(artefact(dist, f"{name}.tar.gz")) as archive:
        archive.extractall(tmp_path)
    (platform,) = [
        (system, processor)
        for system, processors in PLATFORMS.items()
        for processor, triple in processors.items()
        if triple == target.triple
    ]
    prefix = tmp_path / "prefix"
    result = subprocess.run(
        [require("ruby"), STAND_IN, formula, prefix, *platform], cwd=tmp_path / name, check=True, stdout=subprocess.PIPE, text=True
    )
    installed = json.loads(result.stdout)
    assert installed["url"].endswith(f"/{name}.tar.gz")
    assert installed["sha256"] == digest(dist / f"{name}.tar.gz")
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    assert {
        "bin/restante",
        "etc/bash_completion.d/restante",
        "share/doc/restante/README.md",
        "share/fish/vendor_completions.d/restante.fish",
        "share/man/man1/restante.1",
        "share/zsh/site-functions/_restante",
    } <= files
    mail_in_mail_out(installed["service"])
