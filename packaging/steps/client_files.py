"""Files that the packages of npm and PyPI contain: licenses, and a README whose links work outside the source."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from .release import ROOT, Release

LICENSES = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT")


def readme(release: Release, path: Path) -> bytes:
    """Returns a README. Its relative links become links to the source of this version, if its address is known."""
    text = path.read_text(encoding="utf-8")
    if release.repository is not None:
        directory = path.parent.relative_to(ROOT).as_posix()

        def absolute(link: re.Match) -> str:
            target = posixpath.normpath(posixpath.join(directory, link[1]))
            return f"]({release.repository}/blob/v{release.version}/{target}{link[2]})"

        text = re.sub(r"\]\((\.\.?/[^)#]+)(#[^)]*|)\)", absolute, text)
    return text.encode()
