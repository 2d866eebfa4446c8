"""The programs: static ones for Linux, and one for the system of this machine elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

from .release import Release, ReleaseError, Target

# Zig is the C compiler and linker for all Linux targets, so that the build needs no other cross compiler.
ZIG = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"]


def build(release: Release) -> list[Path]:
    if release.binaries:
        return [release.binary(target) for target in release.targets]
    return [build_binary(release, target) for target in release.targets]


def build_binary(release: Release, target: Target) -> Path:
    if not (target.is_linux or target.runs_here):
        raise ReleaseError(f"programs for {target} can only be built on that system")
    release.require("cargo", "see https://rustup.rs/")
    arguments = ["--locked", "--package", "restante", "--profile", release.profile, "--target", target.triple]
    if target.is_linux:
        zig = release.python_tools("zig", ZIG)
        release.run([zig / "cargo-zigbuild", "zigbuild", *arguments])
    else:
        release.run(["cargo", "build", *arguments])
    directory = "debug" if release.profile == "dev" else release.profile
    program = release.work.parent / target.triple / directory / target.program
    path = release.work / "binaries" / target.triple / target.program
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, path)
    return path
