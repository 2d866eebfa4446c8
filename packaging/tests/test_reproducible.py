"""The files of a release depend only on the source and the binaries: a second run in another directory makes the same files."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import PACKAGING, TOOLS, Target, artefact
from steps.checksums import NAME as CHECKSUMS
from steps.checksums import digest


@pytest.fixture(scope="module")
def second(request, dist, version, tmp_path_factory) -> Path:
    """The output directory of a second run, with the binaries and the time of the first one."""
    directory = tmp_path_factory.mktemp("second run")
    targets = request.config.getoption("--targets")
    for triple in targets.split(","):
        target = Target(triple)
        name = f"restante-{version}-{target}"
        with tarfile.open(artefact(dist, f"{name}.tar.gz")) as archive:
            program = archive.getmember(f"{name}/{target.program}")
            (directory / "binaries" / triple).mkdir(parents=True)
            (directory / "binaries" / triple / target.program).write_bytes(archive.extractfile(program).read())
            (directory / "binaries" / triple / target.program).chmod(0o755)
    subprocess.run(
        [sys.executable, PACKAGING / "release", "--targets", targets, "--binaries", directory / "binaries"]
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
