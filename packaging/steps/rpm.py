"""RPM packages with the systemd unit, its user and its directories: .rpm."""

from __future__ import annotations

from pathlib import Path

from .linux import REVISION, linux_targets, package_version, stage
from .release import Release, Target

CARGO_GENERATE_RPM = "0.21.1"


def build(release: Release) -> list[Path]:
    return [build_package(release, target, release.version) for target in linux_targets(release)]


def install(release: Release) -> Path:
    """Installs cargo-generate-rpm. Returns its path."""
    return release.cargo_tool("cargo-generate-rpm", CARGO_GENERATE_RPM, optimized=("zstd-sys",))


def name(version: str, target: Target) -> str:
    """Returns the file name of the package."""
    return f"restante-{package_version(version)}-{REVISION}.{target.arch}.rpm"


def build_package(release: Release, target: Target, version: str, compression: str = "zstd") -> Path:
    """Writes the package to the output directory. Tests of upgrades give it another version, and do not compress it."""
    path = release.out / name(version, target)
    staged = stage(release, target, package_version(version))
    command = [install(release), "generate-rpm", "--package", "crates/restante", "--target", target, "--target-dir", staged]
    command += ["--set-metadata", f'version = "{package_version(version)}"', "--set-metadata", f'release = "{REVISION}"']
    release.run([*command, "--payload-compress", compression, "--output", path])
    return path
