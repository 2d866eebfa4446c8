"""The Homebrew formula, which installs the archives of a release: restante.rb."""

from __future__ import annotations

import os
from pathlib import Path

from . import archives
from .checksums import digest
from .release import ROOT, Release, Target

HOMEPAGE = "https://github.com/restante/restante"

# The systems and processors of a formula, with their targets.
PLATFORMS = {
    "macos": {"arm": "aarch64-apple-darwin", "intel": "x86_64-apple-darwin"},
    "linux": {"arm": "aarch64-unknown-linux-musl", "intel": "x86_64-unknown-linux-musl"},
}


def build(release: Release) -> list[Path]:
    template = (ROOT / "packaging/homebrew/restante.rb.in").read_text(encoding="utf-8")
    formula = template.replace("@HOMEPAGE@", HOMEPAGE).replace("@VERSION@", release.version)
    formula = formula.replace("@ARCHIVES@\n", "".join(system(release, name) for name in PLATFORMS))
    path = release.out / "restante.rb"
    path.write_text(formula, encoding="utf-8", newline="\n")
    return [path]


def system(release: Release, name: str) -> str:
    """Returns the block of an operating system, or nothing if the output directory has no archive for it."""
    blocks = ""
    for processor, triple in PLATFORMS[name].items():
        archive = release.out / f"{archives.name(release, Target(triple))}.tar.gz"
        if archive.is_file() and release.is_part(archive):
            blocks += f'    on_{processor} do\n      url "{url(release, archive)}"\n      sha256 "{digest(archive)}"\n    end\n'
    return f"  on_{name} do\n{blocks}  end\n\n" if blocks else ""


def url(release: Release, archive: Path) -> str:
    """Returns where an archive is published. RESTANTE_DOWNLOAD_URL names another directory, such as a mirror."""
    base = os.environ.get("RESTANTE_DOWNLOAD_URL") or f"{HOMEPAGE}/releases/download/v{release.version}"
    return f"{base.rstrip('/')}/{archive.name}"
