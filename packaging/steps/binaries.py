"""The programs: static ones for Linux, one for Windows, and on macOS one for the same system."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .release import ROOT, Release, ReleaseError, Target

# Zig is the C compiler and linker for all Linux targets, so that the build needs no cross compiler of the system.
ZIG = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"]

# The programs that build for Windows, by the Debian packages that contain them.
WINDOWS_TOOLS = {"gcc-mingw-w64-x86-64": "x86_64-w64-mingw32-gcc", "nasm": "nasm"}


def build(release: Release) -> list[Path]:
    if release.binaries:
        return [release.binary(target) for target in release.targets]
    return [build_binary(release, target) for target in release.targets]


def install(release: Release) -> Path:
    """Installs Zig and cargo-zigbuild. Returns the directory of the programs."""
    return release.python_tools("zig", ZIG)


def build_binary(release: Release, target: Target) -> Path:
    """Builds the program for a target and returns a copy of it."""
    if target.is_macos and not target.runs_here:
        raise ReleaseError(f"programs for {target} can only be built on that system")
    release.require("cargo", "install Rust, see https://rustup.rs/")
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").resolve()
    # Afterwards the directories of all dependencies exist.
    release.run(["cargo", "fetch", "--locked", "--target", target.triple])
    prefixes = path_prefixes(release, cargo_home)
    arguments = ["--locked", "--package", "restante", "--profile", release.profile, "--target", target.triple]
    arguments += ["--target-dir", release.target_directory]
    if target.is_linux:
        zig = install(release)
        # cargo-zigbuild finds Zig as a module of the Python interpreter that is first in PATH.
        path = os.pathsep.join([str(zig), os.environ.get("PATH", "")])
        # The Makefile of LuaJIT also links a program, which is not used. It needs the unwinder, which Zig links only if it is
        # named, and the `strip` of this machine does not know the other processor.
        variables = dict(flags(target, prefixes), PATH=path, TARGET_LIBS="-lunwind", TARGET_STRIP="true")
        release.run([zig / "cargo-zigbuild", "zigbuild", *arguments], env=variables)
    else:
        if target.is_windows:
            for package, program in WINDOWS_TOOLS.items():
                release.require(program, f"Debian has it in the package {package}")
        release.run(["cargo", "build", *arguments], env=flags(target, prefixes))
    directory = "debug" if release.profile == "dev" else release.profile
    program = release.target_directory / target.triple / directory / target.program
    path = release.built_binary(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, path)
    return path


def path_prefixes(release: Release, cargo_home: Path) -> dict[Path, str]:
    """Returns the directories of this machine that file names in a program begin with, and what replaces them. With them,
    the program does not depend on where it is built. If several match, the compiler uses the last. The script `rustc` replaces
    the directory of the source."""
    compiler = release.run(["rustc", "--version", "--verbose"], capture=True)
    commit = re.search(r"^commit-hash: (\w+)$", compiler, re.MULTILINE)
    sysroot = Path(release.run(["rustc", "--print", "sysroot"], capture=True).strip())
    prefixes = {
        cargo_home: "/cargo",
        release.target_directory: "/target",
        # The standard library, if its source is installed.
        sysroot / "lib" / "rustlib" / "src" / "rust": f"/rustc/{commit.group(1) if commit else 'unknown'}",
    }
    # The name of a registry's directory depends on its address, and so on mirrors.
    for registry in sorted((cargo_home / "registry" / "src").glob("*")):
        prefixes[registry] = "/cargo/registry"
    return prefixes


def flags(target: Target, prefixes: dict[Path, str]) -> dict[str, str]:
    """Returns the variables that make the compilers of Rust and C replace these prefixes."""
    rust = [f"--remap-path-prefix={directory}={name}" for directory, name in prefixes.items()]
    if target.is_windows:
        # The linker would write the time of the build.
        rust += ["-C", "link-arg=-Wl,--no-insert-timestamp"]
    # A space would separate two flags.
    c = [f"-ffile-prefix-map={directory}={name}" for directory, name in prefixes.items() if " " not in str(directory)]
    if target.is_linux:
        # Huge pages would make the memory of an idle server 8 MB larger.
        c.append("-DMI_DEFAULT_ALLOW_THP=0")
    return {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(rust),
        "CFLAGS_" + target.triple.replace("-", "_"): " ".join(c),
        "RUSTC_WRAPPER": str(Path(__file__).with_name("rustc")),
        "RELEASE_SOURCE": str(ROOT),
    }
