"""The checksums: they name every file of the release, and match."""

from __future__ import annotations

import subprocess

from conftest import artefact, require


def test_sha256sum_accepts_the_files(dist):
    listing = artefact(dist, "SHA256SUMS")
    subprocess.run([require("sha256sum"), "--check", "--quiet", "--strict", listing.name], check=True, cwd=dist)


def test_every_file_has_a_checksum(dist):
    listing = artefact(dist, "SHA256SUMS")
    listed = [line[66:] for line in listing.read_text().splitlines()]
    files = sorted(path.relative_to(dist).as_posix() for path in dist.rglob("*") if path.is_file() and path != listing)
    assert listed == files
