"""SHA256SUMS: the checksums of all other files, for `sha256sum --check`."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from .release import Release

NAME = "SHA256SUMS"


def build(release: Release) -> list[Path]:
    listing = release.out / NAME
    files = sorted(path for path in release.out.rglob("*") if path.is_file() and path != listing)
    for path in files:
        if not release.is_part(path):
            print(f"{NAME} does not list {release.display_name(path)}: this run did not make it", file=sys.stderr)
    parts = filter(release.is_part, files)
    lines = [f"{digest(path)}  {path.relative_to(release.out).as_posix()}\n" for path in parts]
    listing.write_bytes("".join(lines).encode())
    return [listing]


def digest(path: Path) -> str:
    """Returns the SHA-256 checksum of a file in hexadecimal."""
    checksum = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest()


def remove_listed_files(release: Release) -> None:
    """Removes the files of the previous release from the output directory: those that its listing names."""
    listing = release.out / NAME
    if not listing.is_file():
        return
    for line in listing.read_text(encoding="utf-8").splitlines():
        path = release.out / line[66:]
        # A listing that was edited cannot name a file elsewhere.
        if path.resolve().is_relative_to(release.out):
            path.unlink(missing_ok=True)
    listing.unlink()
