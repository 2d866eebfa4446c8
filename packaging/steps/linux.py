"""The files of the Debian and RPM packages that are not in the source."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

from .archive import EXECUTABLE, compress
from .release import ROOT, SOURCE_DOCUMENTS, Release, Target

# The name and address in the Debian package.
MAINTAINER = "The Restante authors <restante@users.noreply.github.com>"

# The version of the packages for the same version of the program.
REVISION = "1"


def linux_targets(release: Release) -> list[Target]:
    return [target for target in release.targets if target.is_linux]


def package_version(version: str) -> str:
    """Returns a version of the program as dpkg and rpm sort it: 1.0.0~rc.1 is older than 1.0.0."""
    return version.replace("-", "~", 1)


def stage(release: Release, target: Target, version: str) -> Path:
    """Writes the binary, man pages, completions, a changelog and the files of the source to a directory that has the form of
    Cargo's target directory. Returns its path, which cargo-deb and cargo-generate-rpm use in place of `target/` in
    crates/restante/Cargo.toml. All files have the time of the release: cargo-generate-rpm keeps earlier times."""
    top = release.work / "linux"
    directory = top / target.triple / "release"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "man").mkdir(parents=True)
    (directory / "completions").mkdir()
    shutil.copyfile(release.binary(target), directory / "restante")
    (directory / "restante").chmod(EXECUTABLE)
    for name, path in release.documents.items():
        if name.startswith("man/"):
            (directory / f"{name}.gz").write_bytes(compress(path.read_bytes()))
        elif name.startswith("completions/"):
            shutil.copyfile(path, directory / name)
    (directory / "changelog.Debian.gz").write_bytes(compress(changelog(version, release.source_date_epoch).encode()))
    for path in source_files(release):
        copy = directory / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for path in directory.rglob("*"):
        os.utime(path, (release.source_date_epoch, release.source_date_epoch))
    return top


def source_files(release: Release) -> list[Path]:
    """Returns the files of the source that are in packages."""
    names = (*SOURCE_DOCUMENTS, "packaging/restante.service", "packaging/restante.toml")
    docs = ROOT / "docs"
    pages = [path for path in release.tracked_files(docs) if path.parent == docs and path.suffix == ".md"]
    return [*(ROOT / name for name in names), *pages]


def changelog(version: str, time: int) -> str:
    """Returns a changelog in Debian's format. CHANGELOG.md has the changes themselves."""
    date = datetime.fromtimestamp(time, timezone.utc).strftime("%a, %d %b %Y %H:%M:%S +0000")
    return f"restante ({version}-{REVISION}) stable; urgency=medium\n\n  * Release {version}.\n\n -- {MAINTAINER}  {date}\n"
