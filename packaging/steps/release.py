"""What all steps share: version, targets, directories, programs and documents."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

# The directory of the source.
ROOT = Path(__file__).resolve().parent.parent.parent

LINUX_TARGETS = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl")
MACOS_TARGETS = ("aarch64-apple-darwin", "x86_64-apple-darwin")
WINDOWS_TARGETS = ("x86_64-pc-windows-gnu",)

# The completions, by the name that `restante completions` has for their shell.
COMPLETIONS = {
    "bash": "completions/restante.bash",
    "zsh": "completions/_restante",
    "fish": "completions/restante.fish",
    "powershell": "completions/_restante.ps1",
}

# Documents that are files of the source.
SOURCE_DOCUMENTS = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md")


class ReleaseError(Exception):
    """A release cannot be built. The message says why, and what to do."""


@dataclass(frozen=True)
class Target:
    """A platform, named as Cargo names it."""

    triple: str

    @property
    def arch(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.triple.split("-")[0]

    @property
    def is_linux(self) -> bool:
        return "-linux-" in self.triple

    @property
    def is_windows(self) -> bool:
        return "-windows-" in self.triple

    @property
    def is_macos(self) -> bool:
        return self.triple.endswith("-apple-darwin")

    @property
    def program(self) -> str:
        """The file name of the program."""
        return "restante.exe" if self.is_windows else "restante"

    @property
    def runs_here(self) -> bool:
        """Whether this machine can run programs of the platform."""
        arch = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}.get(platform.machine(), platform.machine())
        system = {"Linux": self.is_linux, "Darwin": self.is_macos, "Windows": self.is_windows}.get(platform.system(), False)
        return system and arch == self.arch

    def __str__(self) -> str:
        return self.triple


class Release:
    """One release: its settings, and what several steps need."""

    def __init__(self, out: Path, targets: list[str], profile: str = "dist", binaries: Path | None = None):
        self.out = out.resolve()
        self.targets = [Target(triple) for triple in targets]
        self.profile = profile
        self.binaries = binaries.resolve() if binaries else None
        # The files and directories that the steps have made. None if only some of the steps run.
        self.made: list[Path] | None = None
        # The directory of Cargo's results.
        self.target_directory = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
        # The directory for intermediate results.
        self.work = self.target_directory / "packaging"
        # The directory for programs that steps install.
        self.tools = Path(os.environ.get("TOOLS_DIR") or self.target_directory / "tools").resolve()

    @functools.cached_property
    def version(self) -> str:
        """The version of the workspace."""
        version = self._workspace_field("version")
        if version is None:
            raise ReleaseError("Cargo.toml has no version in [workspace.package]")
        return version

    @functools.cached_property
    def repository(self) -> str | None:
        """The URL of the repository of the source, if Cargo.toml has one."""
        return self._workspace_field("repository")

    def _workspace_field(self, name: str) -> str | None:
        """Returns a field of `[workspace.package]` in Cargo.toml."""
        manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
        section = re.search(r"^\[workspace\.package\]\n(.*?)^\[", manifest, re.MULTILINE | re.DOTALL)
        value = section and re.search(rf'^{name} = "([^"]+)"$', section.group(1), re.MULTILINE)
        return value.group(1) if value else None

    @functools.cached_property
    def source_date_epoch(self) -> int:
        """The time of all files in archives, in seconds since 1970: that of the last commit, or of SOURCE_DATE_EPOCH."""
        value = os.environ.get("SOURCE_DATE_EPOCH")
        if value is None:
            value = self.run(["git", "log", "-1", "--format=%ct"], capture=True)
        try:
            return int(value)
        except ValueError:
            raise ReleaseError(f"SOURCE_DATE_EPOCH is {value!r}, which is not a number of seconds") from None

    def binary(self, target: Target) -> Path:
        """Returns the program for a target. The step `binaries` builds it."""
        path = self.binaries / target.triple / target.program if self.binaries else self.built_binary(target)
        if not path.is_file():
            hint = f"run packaging/release --only binaries --profile {self.profile} --targets {target} first"
            raise ReleaseError(f"there is no {path}: {'--binaries names the wrong directory' if self.binaries else hint}")
        return path

    def built_binary(self, target: Target) -> Path:
        """Returns where the step `binaries` stores the program for a target. Every profile has its own directory."""
        return self.work / "binaries" / self.profile / target.triple / target.program

    def tracked_files(self, directory: Path) -> list[Path]:
        """Returns the files and links below a directory that git tracks and that exist, in the order of their names."""
        names = self.run(["git", "ls-files", "-z"], capture=True, cwd=directory).split("\0")
        paths = (directory / name for name in names if name)
        return sorted(path for path in paths if path.is_symlink() or path.is_file())

    def copy_tracked_files(self, directory: Path, destination: Path) -> None:
        """Copies the files and links below a directory that git tracks, with their changes."""
        for path in self.tracked_files(directory):
            copy = destination / path.relative_to(directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)

    def is_part(self, path: Path) -> bool:
        """Returns whether a file of the output directory belongs to the release. A full run may find files of an earlier run
        that failed: only those that it makes itself belong to it."""
        return self.made is None or any(path.is_relative_to(made) for made in self.made)

    @functools.cached_property
    def documents(self) -> dict[str, Path]:
        """The files that accompany the program, by their names in an archive: man pages as `man/NAME.1`, completions as
        `completions/NAME`, licenses and README."""
        program = self._runnable_program()
        directory = self.work / "documents"
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "man").mkdir(parents=True)
        (directory / "completions").mkdir()
        self.run([program, "man", "--out", directory / "man"])
        for shell, name in COMPLETIONS.items():
            (directory / name).write_bytes(self.run([program, "completions", shell], capture=True).encode())
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        documents = {path.relative_to(directory).as_posix(): path for path in files}
        documents.update((name, ROOT / name) for name in SOURCE_DOCUMENTS)
        return documents

    def _runnable_program(self) -> Path:
        """Returns a program that this machine can run, and builds one if none of the targets is for it."""
        for target in self.targets:
            if target.runs_here:
                return self.binary(target)
        target_directory = self.work / "host"
        self.run(["cargo", "build", "--locked", "--package", "restante", "--target-dir", target_directory])
        return target_directory / "debug" / ("restante.exe" if os.name == "nt" else "restante")

    def require(self, program: str, reason: str) -> str:
        """Returns the path of a program that must be installed."""
        path = shutil.which(program)
        if path is None:
            raise ReleaseError(f"{program} is not installed: {reason}")
        return path

    def run(self, command: list, *, capture: bool = False, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
        """Runs a program to its end. Its output goes to standard error, or is returned with `capture`."""
        command = [str(part) for part in command]
        environment = dict(os.environ, **(env or {}))
        if not (capture and command[0] == "git"):
            environment["SOURCE_DATE_EPOCH"] = str(self.source_date_epoch)
        try:
            output = subprocess.run(
                command, check=True, cwd=cwd, env=environment, stdout=subprocess.PIPE if capture else sys.stderr, encoding="utf-8"
            ).stdout
        except FileNotFoundError:
            raise ReleaseError(f"{command[0]} is not installed") from None
        except subprocess.CalledProcessError as error:
            raise ReleaseError(f"{' '.join(command)} failed with exit status {error.returncode}") from None
        return output or ""

    def python_tools(self, name: str, requirements: list[str]) -> Path:
        """Installs packages of PyPI, given with exact versions, in a virtual environment of their own. Returns the
        directory of its programs."""
        directory = self.tools / name
        programs = directory / ("Scripts" if os.name == "nt" else "bin")
        # Written last: it shows that the packages are complete.
        installed = directory / "requirements.txt"
        wanted = "\n".join(requirements) + "\n"
        if not installed.is_file() or installed.read_text(encoding="utf-8") != wanted:
            venv.create(directory, clear=True, with_pip=True)
            self.run([programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
            installed.write_text(wanted, encoding="utf-8")
        return programs

    def cargo_tool(self, crate: str, version: str, optimized: tuple[str, ...] = ()) -> Path:
        """Installs a program of crates.io with this exact version. Compiles the packages `optimized` with optimization. Returns
        the path of the program."""
        directory = self.tools / f"{crate}-{version}"
        program = directory / "bin" / (f"{crate}.exe" if os.name == "nt" else crate)
        if not program.is_file():
            build = directory / "build"
            # Compiles faster than the profile `release`. Only the code that compresses files is too slow without any optimization.
            command = ["cargo", "install", crate, "--version", f"={version}", "--locked", "--debug", "--config", "profile.dev.debug=0"]
            for package in optimized:
                command += ["--config", f"profile.dev.package.{package}.opt-level=1"]
            self.run([*command, "--root", directory, "--target-dir", build], env={"CARGO_INCREMENTAL": "0"})
            shutil.rmtree(build)
        return program

    def display_name(self, path: Path) -> str:
        """Returns the name of a file in messages: relative to the output directory or the source."""
        for directory in (self.out, self.work, ROOT):
            if path.is_relative_to(directory):
                return path.relative_to(directory).as_posix()
        return str(path)
