"""Archives of the program with man pages, completions and licenses: .tar.gz, and .zip for Windows."""

from __future__ import annotations

from pathlib import Path

from .archive import EXECUTABLE, Entry, write_tar_gz, write_zip
from .release import Release, Target


def build(release: Release) -> list[Path]:
    return [build_archive(release, target) for target in release.targets]


def name(release: Release, target: Target) -> str:
    """Returns the name of the archive, without its extension, and of the directory in it."""
    return f"restante-{release.version}-{target}"


def build_archive(release: Release, target: Target) -> Path:
    directory = name(release, target)
    entries = [Entry(f"{directory}/{target.program}", release.binary(target), EXECUTABLE)]
    entries += [Entry(f"{directory}/{file}", path) for file, path in release.documents.items()]
    if target.is_windows:
        path = release.out / f"{directory}.zip"
        write_zip(path, entries, release.source_date_epoch)
    else:
        path = release.out / f"{directory}.tar.gz"
        write_tar_gz(path, entries, release.source_date_epoch)
    return path
