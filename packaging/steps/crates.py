"""Packages for crates.io, from which `cargo install restante` builds the program."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .release import ROOT, Release, ReleaseError


def build(release: Release) -> list[Path]:
    published, others = workspace_crates(release)
    # Only the first command needs the network. Without `--offline`, the second one would ask for every dependency of every crate.
    release.run(["cargo", "fetch", "--locked"])
    target_directory = release.work / "crates"
    shutil.rmtree(target_directory / "package", ignore_errors=True)
    command = ["cargo", "package", "--workspace", "--locked", "--offline", "--no-verify", "--allow-dirty"]
    for name in others:
        command += ["--exclude", name]
    release.run([*command, "--target-dir", target_directory])

    out = release.out / "crates"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in published:
        file = f"{name}-{release.version}.crate"
        source = target_directory / "package" / file
        if not source.is_file():
            raise ReleaseError(f"cargo package wrote no {file}: [workspace.package] in Cargo.toml has the version of all crates")
        shutil.copyfile(source, out / file)
    return [out]


def workspace_crates(release: Release) -> tuple[list[str], list[str]]:
    """Returns the names of the crates that are published, and of the others."""
    metadata = json.loads(
        release.run(["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1", "--manifest-path", ROOT / "Cargo.toml"], capture=True)
    )
    published, others = [], []
    for package in metadata["packages"]:
        # The registries that it may be published to: none, or without a limit.
        (others if package["publish"] == [] else published).append(package["name"])
    return sorted(published), sorted(others)
