"""The files of a release depend only on the source and the binaries: a second run in another directory makes the same files."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import PACKAGING, TOOLS, Target, missing
from steps.checksums import NAME as CHECKSUMS
from steps.checksums import digest
from steps.npm import PLATFORMS


@pytest.fixture(scope="module")
def second(dist, version, tmp_path_factory) -> Path:
    """The output directory of a second run, with all binaries and the time of the first one."""
    directory = tmp_path_factory.mktemp("second run")
    targets = []
    for package in sorted((dist / "npm").glob(f"restante-*-{version}.tgz")):
        target = Target(PLATFORMS[package.name.removeprefix("restante-").removesuffix(f"-{version}.tgz")])
        targets.append(target.triple)
        with tarfile.open(package) as archive:
            program = archive.getmember(f"package/bin/{target.program}")
            (directory / "binaries" / target.triple).mkdir(parents=True)
            (directory / "binaries" / target.triple / target.program).write_bytes(archive.extractfile(program).read())
            (directory / "binaries" / target.triple / target.program).chmod(0o755)
    if not targets:
        missing(f"there is no program in {dist}")
    subprocess.run(
        [sys.executable, PACKAGING / "release", "--targets", ",".join(targets), "--binaries", directory / "binaries"]
        + ["--out", directory / "dist"],
        check=True,
        env=dict(
            os.environ,
            SOURCE_DATE_EPOCH=str(program.mtime),
            CARGO_TARGET_DIR=str(directory / "target"),
            TOOLS_DIR=str(TOOLS),
            # Files do not get their permissions or times from the user who runs the script.
            TZ="Asia/Kathmandu",
        ),
        umask=0o077,
    )
    return directory / "dist"


def test_a_second_run_makes_the_same_files(dist, second):
    def digests(directory: Path) -> dict[str, str]:
        return {path.relative_to(directory).as_posix(): digest(path) for path in directory.rglob("*") if path.is_file()}

    first, again = digests(dist), digests(second)
    assert CHECKSUMS in first
    assert {name for name in first.keys() | again.keys() if first.get(name) != again.get(name)} == set()
