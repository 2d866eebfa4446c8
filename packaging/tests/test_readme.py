"""The commands of README.md that need no release: those of *Quick start*, and those of *Test automation* that install the clients.
They run as written, in a clone. Only `cargo test`, which takes long, is run by `./check` instead.

The clone builds the program without optimization. It uses the dependencies that the tests of the workspace have compiled, if the
working tree has no changes: otherwise the next build of the working tree would use what the clone has compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import DEADLINE, ROOT, STEP_LIMIT, missing, require
from steps.release import Release

# A network of its own, in which the server can use its own ports.
NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]
RUN_IN_NAMESPACE = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from container import enable_loopback
enable_loopback()
os.execvp(sys.argv[1], sys.argv[1:])
"""
SERVER = "cargo run"
TESTS = "cargo test --workspace --no-fail-fast"
# Ends the server if a command fails.
START = f"""
set -euo pipefail
{SERVER} > "$OUTPUT/log" 2>&1 &
server=$!
trap 'kill "$server"; cat "$OUTPUT/log"' EXIT
until curl --fail --silent --output "$OUTPUT/ready" http://localhost:9000/readyz; do
    kill -0 "$server"
    sleep 0.1
done
"""
STOP = """
trap - EXIT
kill "$server"
wait "$server"
"""


def commands(readme: str, heading: str) -> list[str]:
    """Returns the commands of a section, without comments."""
    section = re.search(rf"^## {heading}\n(.*?)^## ", readme, re.MULTILINE | re.DOTALL).group(1)
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines), lines
    return [re.sub(r"\s+# .*", "", line.removeprefix("$ ")) for line in lines]


@pytest.fixture(scope="module")
def clone() -> Path:
    """A clone of this repository. Its path is always the same."""
    if not (ROOT / ".git").exists():
        missing("this is not a clone")
    release = Release(out=ROOT / "dist", targets=[])
    directory = release.work / "readme" / "restante"
    target = release.target_directory if status(ROOT) == "" else release.work / "readme" / "target"
    shutil.rmtree(directory, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    # The files are newer than what was compiled from those of the working tree, so all crates of the workspace are compiled.
    subprocess.run([require("git"), "clone", "--quiet", ROOT, directory], check=True)
    (directory / "target").symlink_to(target)
    return directory


def status(directory: Path) -> str:
    """Returns the files of a working tree that were changed or added."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(command, cwd=directory, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def readme(clone) -> str:
    return (clone / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """The variables of the commands: no settings of the build, of Python or of the program."""
    names = ("CARGO_PROFILE_", "CARGO_TARGET_DIR", "PYTHON", "RESTANTE_", "INBUCKET_", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return dict(variables, CARGO_INCREMENTAL="0", PIP_DISABLE_PIP_VERSION_CHECK="1")


@pytest.fixture(scope="module")
def program(clone, environment) -> Path:
    """The directory of the program that `cargo run` starts."""
    build = SERVER.replace("run", "build").split()
    subprocess.run([require("cargo"), *build[1:]], cwd=clone, env=environment, check=True)
    return clone / "target" / "debug"


def test_the_quick_start_works(clone, readme, environment, program, tmp_path):
    for name in ("unshare", "curl"):
        require(name)
    if subprocess.run([*NAMESPACE, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        missing("this machine permits no user namespaces")
    first, *others, last = commands(readme, "Quick start")
    assert [first, last] == [SERVER, TESTS]
    assert 'export PATH="$PWD/target/debug:$PATH"' in others
    # One shell: `export` has an effect on the commands after it.
    script = [START, *(f'{command} > "$OUTPUT/{number}"' for number, command in enumerate(others)), STOP]
    in_namespace = [*NAMESPACE, sys.executable, "-c", RUN_IN_NAMESPACE, require("bash"), "-c", "\n".join(script)]
    subprocess.run(in_namespace, cwd=clone, env=dict(environment, OUTPUT=str(tmp_path)), check=True, timeout=DEADLINE)
    output = {command: (tmp_path / str(number)).read_text() for number, command in enumerate(others)}
    assert output["restante codes bob"] == "271828\n"
    requests = [text for command, text in output.items() if command.startswith("curl")]
    assert len(requests) == 5 and all("271828" in text or "Your code" in text for text in requests), output


def test_all_checks_run_the_tests_as_the_readme_does(readme):
    assert TESTS in commands(readme, "Quick start")
    check = [line.strip() for line in (ROOT / "check").read_text(encoding="utf-8").splitlines()]
    assert f"step {TESTS} --locked" in check


def test_the_clients_can_be_installed_from_the_source_tree(clone, readme, environment, program, tmp_path):
    require("npm")
    venv.create(tmp_path / "venv", with_pip=True)
    shop = clone.parent / "shop"
    shutil.rmtree(shop, ignore_errors=True)
    shop.mkdir()
    (shop / "package.json").write_text('{"name": "shop", "version": "1.0.0", "private": true, "type": "module"}\n')
    path = os.pathsep.join(str(part) for part in (tmp_path / "venv" / "bin", program, environment["PATH"]))
    environment = dict(environment, PATH=path)
    install = [command for command in commands(readme, "Test automation") if command.startswith(("pip ", "npm "))]
    assert len(install) == 3, install
    for command in install:
        subprocess.run(["bash", "-c", command], cwd=clone, env=environment, check=True, timeout=STEP_LIMIT)

    python = """
import restante
with restante.server() as r:
    r.mailbox("bob").inject(sender="ann@example.org", subject="Your code", text="Your code is 271828.")
    print(r.mailbox("bob").wait(match="subject:code").code())
"""
    node = """
import { start } from "restante/server";
const restante = await start();
await restante.mailbox("bob").inject({ from: "ann@example.org", subject: "Your code", text: "Your code is 271828." });
console.log(await (await restante.mailbox("bob").waitForMessage({ match: "subject:code" })).code());
await restante.stop();
"""
    (shop / "code.js").write_text(node)
    for command in (["python", "-c", python], [shutil.which("node"), "code.js"]):
        result = subprocess.run(command, cwd=shop, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE)
        assert result.stdout == "271828\n"

    assert status(clone) == "", "building and installing left files"
