"""Installs the program with `cargo install` from the packages for crates.io, and uses it.

All dependencies come from a directory source, which Cargo uses instead of crates.io: the crates of the workspace from the
packages, the others from the files that `cargo fetch` has downloaded. No file of the source tree is used. Results of the build
stay in target/packaging, so that later runs compile only the crates of the workspace.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, artefact, mail_in_mail_out, require
from steps.release import Release

# Files that a package needs besides its manifest and code.
COMMON_FILES = {"Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"}


@pytest.fixture(scope="module")
def crates(dist) -> list[Path]:
    """The packages."""
    packages = sorted(artefact(dist, "crates").glob("*.crate"))
    assert packages, "dist/crates has no packages"
    return packages


def test_packages_are_complete(crates):
    for crate in crates:
        directory = crate.name.removesuffix(".crate")
        with tarfile.open(crate) as archive:
            files = {name.removeprefix(f"{directory}/") for name in archive.getnames()}
            manifest = archive.extractfile(f"{directory}/Cargo.toml").read().decode()
        assert COMMON_FILES <= files, crate.name
        assert not any(name.startswith(("tests/", "examples/")) or "node_modules" in name for name in files), crate.name
        for key in ("description", "license", "repository", "readme"):
            assert re.search(f"^{key} = ", manifest, re.MULTILINE), f"{crate.name} has no {key}"
        assert "restante-test" not in manifest, f"{crate.name} needs a crate that is not published"


def test_cargo_install(crates, version, tmp_path):
    if not os.environ.get("TEST_CARGO_INSTALL"):
        pytest.skip("TEST_CARGO_INSTALL is not set: this compiles the program once more")
    cargo = require("cargo")
    work = Release(out=ROOT / "dist", targets=[]).work / "cargo-install"
    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    for package in dependencies(cargo):
        add_package(source, Path(package["manifest_path"]).parent, checksum(package))
    for crate in crates:
        with tarfile.open(crate) as archive:
            archive.extractall(tmp_path / "unpacked")
        add_package(
            source, tmp_path / "unpacked" / crate.name.removesuffix(".crate"), hashlib.sha256(crate.read_bytes()).hexdigest()
        )

    settings = [
        'source.crates-io.replace-with="packages"',
        f"source.packages.directory={json.dumps(str(source))}",
        # Less to compile and to keep.
        "profile.dev.debug=false",
        "profile.dev.package.brotli.opt-level=3",
    ]
    command = [cargo, "install", "restante", "--version", version, "--locked", "--offline", "--debug"]
    command += ["--root", tmp_path / "installed", "--target-dir", work / "target"]
    for setting in settings:
        command += ["--config", setting]
    # Not in the source tree, whose settings would apply.
    environment = dict(os.environ, CARGO_INCREMENTAL="0")
    subprocess.run([str(part) for part in command], check=True, cwd=tmp_path, env=environment)

    program = tmp_path / "installed" / "bin" / "restante"
    assert version in subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    mail_in_mail_out([program])


def dependencies(cargo: str) -> list[dict]:
    """Returns the packages of crates.io that the workspace uses. Their files are on this machine afterwards."""
    command = [cargo, "metadata", "--locked", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout)
    return [package for package in metadata["packages"] if package["source"] is not None]


def checksum(package: dict) -> str:
    """Returns the checksum of a package in Cargo.lock."""
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    entry = f'name = "{package["name"]}"\nversion = "{package["version"]}"\nsource = "{package["source"]}"\nchecksum = "'
    return lock.split(entry, 1)[1].split('"', 1)[0]


def add_package(source: Path, files: Path, checksum: str) -> None:
    """Adds a package to a directory source, by links to its files where that is possible."""
    directory = source / files.name
    shutil.copytree(files, directory, copy_function=link_or_copy, ignore=shutil.ignore_patterns(".cargo-ok"))
    (directory / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}), encoding="utf-8")


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
