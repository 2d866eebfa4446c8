"""Archives that depend only on their content: sorted names, fixed times and owners."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

# The permissions of programs and directories, and of other files.
EXECUTABLE = 0o755
READABLE = 0o644

# A higher level takes more than twice as long, for files that are 0.6 % smaller.
COMPRESSION = 6


@dataclass(frozen=True)
class Entry:
    """One file of an archive. `content` is a file to read or the bytes themselves; a directory and a link have none."""

    name: str
    content: Path | bytes | None = None
    mode: int = READABLE
    link: str | None = None
    uid: int = 0
    gid: int = 0

    def read(self) -> bytes:
        if isinstance(self.content, Path):
            return self.content.read_bytes()
        return self.content or b""

    @property
    def is_directory(self) -> bool:
        return self.content is None and self.link is None


def tar(entries: list[Entry], time: int) -> bytes:
    """Returns a tar archive. All files have this time, in seconds since 1970."""
    buffer = io.BytesIO()
    # USTAR has no headers that contain the time of access or the process id.
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in ordered(entries):
            info = tarfile.TarInfo(entry.name)
            info.mtime = time
            info.mode = entry.mode
            info.uid, info.gid = entry.uid, entry.gid
            if entry.link is not None:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
                archive.addfile(info)
            elif entry.is_directory:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                content = entry.read()
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def compress(content: bytes) -> bytes:
    """Compresses with gzip. The header has no time and no name."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=COMPRESSION, mtime=0) as stream:
        stream.write(content)
    return buffer.getvalue()


def write_tar_gz(path: Path, entries: list[Entry], time: int) -> None:
    """Writes a `.tar.gz` file."""
    path.write_bytes(compress(tar(entries, time)))


def write_zip(path: Path, entries: list[Entry], time: int, *, directories: bool = True) -> None:
    """Writes a `.zip` file, with entries for directories or without. It contains no links."""
    moment = datetime.fromtimestamp(time, timezone.utc)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        for entry in ordered(entries):
            if entry.is_directory and not directories:
                continue
            kind = stat.S_IFDIR if entry.is_directory else stat.S_IFREG
            # The format has no times before 1980.
            info = zipfile.ZipInfo(entry.name, max(moment.timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            # Otherwise the value depends on the machine: 3 is Unix, whose modes `external_attr` has.
            info.create_system = 3
            info.external_attr = (kind | entry.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.read())


def ordered(entries: list[Entry]) -> list[Entry]:
    """Sorts the entries by name, with the directories above them, which need not be listed."""
    by_name = {entry.name.rstrip("/") + ("/" if entry.is_directory else ""): entry for entry in entries}
    for name in list(by_name):
        for parent in Path(name.rstrip("/")).parents:
            if parent != Path("."):
                directory = parent.as_posix() + "/"
                by_name.setdefault(directory, Entry(directory, mode=EXECUTABLE))
    return [by_name[name] for name in sorted(by_name)]
