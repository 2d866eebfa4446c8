"""Tests of .ci/advisories with a copy of it, a small Cargo.lock and a small database."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("advisories")
DATABASE = "target/advisory-dbs/advisory-db-3157b0e258782691"


@pytest.fixture
def root(tmp_path) -> Path:
    """The directory of a workspace with the script, whose advisories are those of the crates `known` and `safe`."""
    database = tmp_path / "database"
    for path in ("crates/known/RUSTSEC-2025-0001.md", "crates/added/RUSTSEC-2025-0002.md", "crates/other/RUSTSEC-2025-0003.md"):
        (database / path).parent.mkdir(parents=True)
        (database / path).write_text("advisory")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message=all", "--no-gpg-sign"]):
        subprocess.run(["git", *arguments], cwd=database, check=True)
    root = tmp_path / "root"
    (root / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, root / ".ci" / "advisories")
    lock(root, "known", "safe")
    assert advisories(root, "update", database).returncode == 0
    return root


def lock(root: Path, *crates: str) -> None:
    """Writes a Cargo.lock with these crates, and one of the workspace."""
    source = 'source = "registry+https://github.com/rust-lang/crates.io-index"\n'
    texts = [f'[[package]]\nname = "{name}"\nversion = "1.0.0"\n{source}checksum = "00"\n' for name in crates]
    texts.append(f'[[package]]\nname = "member-{len(crates)}"\nversion = "0.1.0"\ndependencies = [\n "{crates[0]}",\n]\n')
    (root / "Cargo.lock").write_text("version = 4\n\n" + "\n".join(texts))


def advisories(root: Path, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, root / ".ci" / "advisories", *arguments], capture_output=True, text=True)


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in (directory / "crates").rglob("*.md"))


def test_the_advisories_of_locked_crates_are_prepared(root):
    result = advisories(root, "prepare")
    assert result.returncode == 0, result.stderr
    date = (root / ".ci/advisory-db/COMMIT").read_text().split()[-1]
    assert result.stdout == f"security advisories of {date}\n"
    assert files(root / DATABASE) == ["crates/known/RUSTSEC-2025-0001.md"]
    assert (root / DATABASE / ".git/FETCH_HEAD").exists()


def test_a_crate_that_was_added_after_the_update_is_an_error(root):
    lock(root, "known", "safe", "added")
    result = advisories(root, "prepare")
    assert result.returncode == 1
    assert ": added\n" in result.stderr
    assert "Run `.ci/advisories update`" in result.stderr
    assert advisories(root, "update", root.parent / "database").returncode == 0
    assert advisories(root, "prepare").returncode == 0
    assert files(root / DATABASE) == ["crates/added/RUSTSEC-2025-0002.md", "crates/known/RUSTSEC-2025-0001.md"]


def test_a_crate_that_was_removed_is_no_error(root):
    lock(root, "known")
    assert advisories(root, "prepare").returncode == 0


def test_the_full_database_is_used_if_it_is_there(root):
    lock(root, "known", "safe", "added")
    (root / DATABASE / "crates" / "full").mkdir(parents=True)
    result = advisories(root, "prepare")
    assert result.returncode == 0, result.stderr
    assert (root / DATABASE / "crates" / "full").is_dir()
