"""Tests of ./check with a copy of it, a small repository, and programs that only write down how they were called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT = ["fmt --all --check", "clippy --workspace --all-targets --locked -- -D warnings"]
TEST = "#[test]\nfn webhook_is_sent() {}\n"
IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]


class Checkout:
    """The repository, and the calls of `cargo`."""

    def __init__(self, directory: Path):
        self.root = directory / "root"
        self.programs = directory / "programs"
        self.log = directory / "calls"
        for name in ("check", ".ci/steps"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for path in ("crates/mail/src/lib.rs", "crates/http/src/lib.rs", "crates/http-core/src/lib.rs", "crates/http-web/src/lib.rs", "crates/http-rest/src/lib.rs"):
            self.write(path)
            self.write("/".join([*path.split("/")[:2], "Cargo.toml"]))
        for path in ("src/main.rs", "Cargo.toml", "tests/program/http/webhooks.rs", "tests/program/http/mod.rs", "tests/support/mod.rs", "tests/browser/driver.rs", "tests/clients/imap/run.py"):
            self.write(f"crates/restante/{path}")
        self.write("crates/restante/tests/program/http/webhooks.rs", TEST)
        for path in ("ui/index.html", "docs/rest.md"):
            self.write(path)
        self.program("cargo", f'echo "$*" >> {self.log}; [[ "$*" != *"${{FAILING-nothing}}"* ]]')
        # Without the TypeScript compiler.
        self.program("npm", "exit 1")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def program(self, name: str, script: str) -> None:
        self.programs.mkdir(exist_ok=True)
        (self.programs / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (self.programs / name).chmod(0o755)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *IDENTITY, *arguments], cwd=self.root, check=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=all")

    def check(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        self.log.write_text("")
        path = os.pathsep.join([str(self.programs), os.environ["PATH"]])
        environment = {name: value for name, value in os.environ.items() if name not in ("STEP_TIMES", "REQUIRE_TYPES")}
        environment.update(variables, PATH=path)
        return subprocess.run([self.root / "check", *arguments], env=environment, capture_output=True, text=True)

    def fast(self, *arguments: str) -> tuple[list[str], str]:
        """Returns the calls of `cargo test` of a run that succeeds, and the output."""
        result = self.check("--fast", *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        calls = self.log.read_text().splitlines()
        assert calls[:2] == LINT
        return calls[2:], result.stdout


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


def crate(name: str) -> str:
    return f"test --package {name} --no-fail-fast --locked"


PROGRAM = "test --package restante --lib --bins --no-fail-fast --locked"


@pytest.mark.parametrize(
    ("path", "calls"),
    [
        ("crates/mail/src/lib.rs", [crate("restante-mail")]),
        ("crates/mail/src/new.rs", [crate("restante-mail")]),
        ("crates/mail/Cargo.toml", [crate("restante-mail")]),
        ("crates/http-core/src/lib.rs", [crate("restante-http-core"), crate("restante-http"), crate("restante-http-rest")]),
        ("ui/index.html", [crate("restante-http-web"), crate("restante-http")]),
        ("crates/restante/src/main.rs", [PROGRAM]),
        ("crates/restante/tests/program/http/webhooks.rs", ["test --package restante --test program --locked -- http::webhooks"]),
        ("crates/restante/tests/program/http/mod.rs", ["test --package restante --test program --locked -- http"]),
    ],
)
def test_the_tests_of_a_changed_file_are_run(checkout, path, calls):
    checkout.write(path, TEST + "// changed\n")
    assert checkout.fast()[0] == calls


def test_both_crates_of_a_moved_file_are_tested(checkout):
    checkout.write("crates/mail/src/moved.rs", TEST)
    checkout.commit()
    (checkout.root / "crates/mail/src/moved.rs").rename(checkout.root / "crates/http/src/moved.rs")
    checkout.git("add", "--all")
    assert sorted(checkout.fast()[0]) == [crate("restante-http"), crate("restante-mail")]


def test_a_crate_is_tested_once(checkout):
    for path in ("crates/mail/src/lib.rs", "crates/mail/src/new.rs", "crates/http/src/lib.rs", "crates/http-core/src/lib.rs"):
        checkout.write(path, "changed")
    assert sorted(checkout.fast()[0]) == sorted(map(crate, ("restante-http", "restante-http-core", "restante-http-rest", "restante-mail")))


def test_a_deleted_crate_has_no_tests(checkout):
    shutil.rmtree(checkout.root / "crates/mail")
    assert checkout.fast()[0] == []


@pytest.mark.parametrize("path", ["docs/rest.md", "crates/restante/tests/support/mod.rs", "crates/restante/tests/browser/driver.rs", "crates/restante/tests/clients/imap/run.py", "check"])
def test_changes_that_have_no_tests_are_listed(checkout, path):
    text = (checkout.root / path).read_text()
    checkout.write(path, text + "# changed\n")
    calls, output = checkout.fast()
    assert calls == []
    assert f"\n== changes that only ./check tests:\n{path}\n" in output


def test_commits_of_a_branch_are_included(checkout):
    checkout.git("checkout", "--quiet", "-b", "branch")
    checkout.write("crates/mail/src/lib.rs", "changed")
    checkout.commit()
    checkout.git("checkout", "--quiet", "main")
    checkout.write("crates/http/src/lib.rs", "changed")
    checkout.commit()
    checkout.git("checkout", "--quiet", "branch")
    calls, output = checkout.fast()
    assert calls == [] and "\n== no crate differs from HEAD\n" in output
    assert checkout.fast("main")[0] == [crate("restante-mail")]


def test_all_steps_are_in_the_table(checkout):
    result = checkout.check("lint")
    rows = result.stdout.partition("\n== steps\n")[2].splitlines()
    assert rows[0].split() == ["seconds", "CPU", "s", "step"]
    assert [row.split(maxsplit=2)[2] for row in rows[1:3]] == [f"cargo {arguments}" for arguments in LINT]


def test_a_failing_step_fails_the_run_and_is_in_the_table(checkout):
    result = checkout.check("lint", FAILING="clippy")
    assert result.returncode == 1
    rows = result.stdout.partition("\n== steps\n")[2].splitlines()
    assert rows[2].endswith(f"cargo {LINT[1]} (failed with exit status 1)")
    assert checkout.log.read_text().splitlines() == LINT


@pytest.mark.parametrize("arguments", [["--slow"], ["lint", "test"], ["--fast", "main", "HEAD"]])
def test_wrong_usage_is_refused(checkout, arguments):
    result = checkout.check(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("Usage: ./check ")
    assert checkout.log.read_text() == ""
