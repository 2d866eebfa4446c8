"""Debian packages with the systemd unit, its user and its directories: .deb."""

from __future__ import annotations

from pathlib import Path

from .linux import MAINTAINER, REVISION, linux_targets, package_version, stage
from .release import Release, Target

CARGO_DEB = "3.8.0"

# Debian's names of processors.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def build(release: Release) -> list[Path]:
    return [build_package(release, target) for target in linux_targets(release)]


def install(release: Release) -> Path:
    """Installs cargo-deb, which optimizes its compression itself. Returns its path."""
    return release.cargo_tool("cargo-deb", CARGO_DEB)


def name(version: str, target: Target) -> str:
    """Returns the file name of the package."""
    return f"restante_{package_version(version)}-{REVISION}_{ARCHITECTURES[target.arch]}.deb"


def build_package(release: Release, target: Target) -> Path:
    path = release.out / name(release.version, target)
    version = package_version(release.version)
    staged = stage(release, target, version)
    command = [install(release), "deb", "--package", "restante", "--target", target, "--no-build", "--no-strip", "--no-dbgsym", "--locked"]
    command += ["--deb-version", f"{version}-{REVISION}", "--maintainer", MAINTAINER, "--output", path]
    release.run(command, env={"CARGO_TARGET_DIR": str(staged)})
    return path
