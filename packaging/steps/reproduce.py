"""Builds the programs a second time in other directories, and compares them with those of the first time."""

from __future__ import annotations

import shutil
import sys

from .checksums import digest
from .release import ROOT, Release, ReleaseError


def verify(release: Release) -> None:
    """Fails if the second build of a program differs from the first."""
    directory = release.work / "second build"
    shutil.rmtree(directory, ignore_errors=True)
    source = directory / "source"
    release.copy_tracked_files(ROOT, source)
    target_directory = directory / "target"
    targets = ",".join(target.triple for target in release.targets)
    release.run(
        [sys.executable, source / "packaging" / "release", "--only=binaries", f"--targets={targets}", f"--profile={release.profile}"]
        + [f"--out={directory / 'out'}"],
        cwd=source,
        env={"CARGO_TARGET_DIR": str(target_directory), "TOOLS_DIR": str(release.tools)},
    )
    for target in release.targets:
        first = digest(release.binary(target))
        second = digest(target_directory / release.built_binary(target).relative_to(release.target_directory))
        print(f"{target}: first build {first}, second build {second}", file=sys.stderr)
        if first != second:
            raise ReleaseError(f"the two builds for {target} differ; compare them in {release.work} and {directory}")
    shutil.rmtree(directory)
