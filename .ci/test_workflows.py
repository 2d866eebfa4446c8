"""Tests of .github/workflows: what runs in them, and which jobs can publish. actionlint checks their syntax."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted(Path(__file__).parent.parent.glob(".github/workflows/*.y*ml"))
# An action of a repository with its commit, and its version as a comment.
PINNED = re.compile(r"\s*(- )?uses: [\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# Secrets other than the token of the workflow, and permissions to write.
PRIVILEGES = re.compile(r"\bsecrets\b(?!\.GITHUB_TOKEN)|^ +[\w-]+: write\b|write-all", re.MULTILINE)


def unpinned_actions(workflow: str) -> list[str]:
    """Returns the lines with an action that is not pinned by its commit."""
    return [line for line in workflow.splitlines() if "uses:" in line and not PINNED.fullmatch(line)]


def jobs(workflow: str) -> dict[str, str]:
    """Returns the text of each job. What precedes the jobs applies to all of them, and has an empty name."""
    beginning, _, rest = workflow.partition("\njobs:\n")
    parts = re.split(r"^  ([\w-]+):\n", rest, flags=re.MULTILINE)
    return {"": beginning, **dict(zip(parts[1::2], parts[2::2]))}


def unprotected_jobs(workflow: str) -> list[str]:
    """Returns the jobs with secrets or write access that do not run in the environment `release`."""
    return [
        name for name, text in jobs(workflow).items() if PRIVILEGES.search(text) and "\n    environment: release\n" not in text
    ]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_their_commit(path):
    assert unpinned_actions(path.read_text()) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_with_secrets_or_write_access_run_in_the_environment_release(path):
    assert unprotected_jobs(path.read_text()) == []


def test_the_release_is_published_by_a_protected_job():
    release = next(path for path in WORKFLOWS if path.name == "release.yml").read_text()
    assert [name for name, text in jobs(release).items() if PRIVILEGES.search(text)] == ["publish"]


@pytest.mark.parametrize(
    "line",
    [
        "uses: actions/checkout@v4",
        "uses: actions/checkout@main # v4.4.0",
        "- uses: actions/checkout@11d5960",
        "- uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262",
        "uses: docker://alpine:3",
        "uses: ./.github/actions/local",
    ],
)
def test_other_references_are_found(line):
    assert unpinned_actions(f"      {line}\n") == [f"      {line}"]


def test_unprotected_jobs_are_found():
    job = "  publish:\n    runs-on: ubuntu-latest\n{}    steps:\n      - run: publish ${{{{ secrets.TOKEN }}}}\n"
    assert unprotected_jobs("on: push\njobs:\n" + job.format("")) == ["publish"]
    assert unprotected_jobs("on: push\njobs:\n" + job.format("    environment: release\n")) == []
    assert unprotected_jobs("permissions:\n  contents: write\n\njobs:\n  a:\n    steps: []\n") == [""]
