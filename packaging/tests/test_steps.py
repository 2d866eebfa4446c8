"""What steps share: the files of the source, the binaries of a profile, and the files of a run. Needs no files of a release."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from conftest import PACKAGING, require
from steps import archives, chart, checksums, homebrew, linux, npm, pypi, reproduce
from steps.release import LINUX_TARGETS, MACOS_TARGETS, Release, ReleaseError, Target


@pytest.fixture
def release(tmp_path) -> Release:
    release = Release(out=tmp_path / "dist", targets=[LINUX_TARGETS[0]])
    release.work = tmp_path / "work"
    return release


@pytest.fixture
def source(tmp_path) -> Path:
    """A directory that becomes a git repository with `track`."""
    directory = tmp_path / "source"
    directory.mkdir()
    return directory


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def track(directory: Path) -> None:
    """Makes git track all files of the directory."""
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run([require("git"), *arguments], cwd=directory, check=True)


def load_script() -> ModuleType:
    """Returns packaging/release as a module."""
    loader = importlib.machinery.SourceFileLoader("release_script", str(PACKAGING / "release"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_tracked_files_are_those_of_a_directory_that_exist(release, source):
    for name in ("a/two.md", "a/b/one.md", "a/deleted.md", "other.md"):
        write(source / name)
    (source / "a" / "link").symlink_to("missing")
    track(source)
    write(source / "a" / "two.md~")
    (source / "a" / "deleted.md").unlink()
    assert release.tracked_files(source / "a") == [source / "a" / name for name in ("b/one.md", "link", "two.md")]


def test_the_chart_contains_tracked_files_only(release, source, monkeypatch):
    shutil.copytree(chart.SOURCE, source / "chart")
    track(source)
    write(source / "chart" / "templates" / "draft.yaml")
    monkeypatch.setattr(chart, "SOURCE", source / "chart")
    release.out.mkdir()
    (package,) = chart.build(release)
    with tarfile.open(package) as files:
        names = files.getnames()
    assert "restante/templates/deployment.yaml" in names
    assert "restante/templates/draft.yaml" not in names


def test_linux_packages_contain_tracked_pages_only(release, source, monkeypatch):
    for name in ("docs/install.md", "docs/picture.svg", "docs/more/other.md"):
        write(source / name)
    track(source)
    write(source / "docs" / "draft.md")
    monkeypatch.setattr(linux, "ROOT", source)
    names = {path.relative_to(source).as_posix() for path in linux.source_files(release)}
    assert {name for name in names if name.startswith("docs/")} == {"docs/install.md"}


def test_python_packages_contain_tracked_files_only(release, source):
    write(source / "package" / "__init__.py")
    track(source)
    write(source / "package" / "draft.py")
    assert [entry.name for entry in pypi.package_files(release, source, "src")] == ["src/package/__init__.py"]


def test_the_typescript_client_is_compiled_from_tracked_files_only(release, source, monkeypatch):
    for name in ("package.json", "tsconfig.json", ".npmrc", "bin/restante.js", "src/index.ts"):
        write(source / name)
    track(source)
    write(source / "src" / "draft.ts")
    monkeypatch.setattr(npm, "CLIENT", source)
    monkeypatch.setattr(release, "require", lambda *arguments: "npm")
    run = release.run
    monkeypatch.setattr(release, "run", lambda command, **options: "" if command[0] == "npm" else run(command, **options))
    directory = npm.compile_client(release)
    names = {path.relative_to(directory).as_posix() for path in directory.rglob("*.[jt]s")}
    assert names == {"bin/restante.js", "src/index.ts"}


def test_links_are_copied_as_links(release, source, tmp_path):
    write(source / "ui" / "page.html", "text")
    (source / "crate").mkdir()
    (source / "crate" / "ui").symlink_to("../ui")
    (source / "crate" / "page.html").symlink_to("../ui/page.html")
    track(source)
    write(source / "draft")
    copy = tmp_path / "copy"
    release.copy_tracked_files(source, copy)
    assert os.readlink(copy / "crate" / "ui") == "../ui"
    assert os.readlink(copy / "crate" / "page.html") == "../ui/page.html"
    assert (copy / "crate" / "ui" / "page.html").read_text() == "text"
    assert not (copy / "ui").is_symlink()
    assert not (copy / "draft").exists()


def test_only_a_binary_of_the_chosen_profile_is_used(release):
    target = release.targets[0]
    release.profile = "dev"
    write(release.built_binary(target), "debug")
    assert release.binary(target).read_text() == "debug"
    release.profile = "dist"
    with pytest.raises(ReleaseError, match="--profile dist"):
        release.binary(target)


def test_the_second_build_is_compared_by_profile(release, source, monkeypatch):
    target = release.targets[0]
    release.target_directory = release.work.parent
    write(release.built_binary(target), "same")
    write(source / "packaging" / "release")
    track(source)
    monkeypatch.setattr(reproduce, "ROOT", source)
    run = release.run
    content = "same"

    def build(command, **options):
        if command[0] == "git":
            return run(command, **options)
        assert f"--profile={release.profile}" in command
        work = Path(options["env"]["CARGO_TARGET_DIR"]) / "work"
        write(work / "binaries" / release.profile / target.triple / target.program, content)
        return ""

    monkeypatch.setattr(release, "run", build)
    reproduce.verify(release)
    content = "other"
    with pytest.raises(ReleaseError, match="differ"):
        reproduce.verify(release)


class TestRun:
    """Runs of packaging/release with steps that only write a file."""

    @pytest.fixture
    def script(self, monkeypatch) -> ModuleType:
        script = load_script()

        def step(name: str):
            def write_file(release: Release) -> list[Path]:
                if name == self.failing:
                    raise ReleaseError(f"{name} failed")
                return [write(release.out / name / f"{name}-{self.version}"), release.built_binary(release.targets[0])]

            def write_directory(release: Release) -> list[Path]:
                # As the step `crates` does.
                shutil.rmtree(release.out / name, ignore_errors=True)
                return [write(release.out / name / f"{name}-{self.version}").parent]

            builds = {"checksums": checksums.build, "crates": write_directory}
            return SimpleNamespace(build=builds.get(name, write_file))

        monkeypatch.setattr(script, "step", step)
        monkeypatch.setattr(script, "STEPS", ["archives", "crates", "rpm", "checksums"])
        return script

    version = "1"
    failing = None

    def run(self, script: ModuleType, release: Release, only: list[str] | None = None) -> None:
        write(release.built_binary(release.targets[0]))
        script.build(release, only)

    def listed(self, release: Release) -> list[str]:
        return [line[66:] for line in (release.out / checksums.NAME).read_text().splitlines()]

    def test_a_run_after_a_failed_one_lists_only_its_own_files(self, script, release, capsys):
        self.failing = "rpm"
        with pytest.raises(ReleaseError):
            self.run(script, release)
        note = write(release.out / "notes.txt")
        self.version, self.failing = "2", None
        self.run(script, release)
        assert self.listed(release) == ["archives/archives-2", "crates/crates-2", "rpm/rpm-2"]
        # Files that may be those of the user stay, and are named.
        assert note.exists()
        errors = capsys.readouterr().err
        assert "SHA256SUMS does not list archives/archives-1" in errors
        assert "SHA256SUMS does not list notes.txt" in errors

    def test_a_run_removes_the_files_of_the_last_complete_one(self, script, release):
        self.run(script, release)
        self.version = "2"
        self.run(script, release)
        assert not (release.out / "archives" / "archives-1").exists()
        assert self.listed(release) == ["archives/archives-2", "crates/crates-2", "rpm/rpm-2"]

    def test_checksums_alone_list_all_files(self, script, release):
        self.run(script, release, ["archives"])
        self.run(script, release, ["checksums"])
        assert self.listed(release) == ["archives/archives-1"]


def test_the_formula_has_no_archive_of_a_failed_run(release):
    for triple in (LINUX_TARGETS[0], MACOS_TARGETS[0]):
        write(release.out / f"{archives.name(release, Target(triple))}.tar.gz")
    (formula,) = homebrew.build(release)
    assert "on_macos" in formula.read_text()
    release.made = [release.out / f"{archives.name(release, release.targets[0])}.tar.gz"]
    (formula,) = homebrew.build(release)
    assert "on_linux" in formula.read_text()
    assert "on_macos" not in formula.read_text()
