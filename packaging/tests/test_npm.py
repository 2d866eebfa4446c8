"""The npm packages: installed in an empty project from the files, without network. The command, the client, and errors."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import smtplib
import socket
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from conftest import (
    DEADLINE,
    artefact,
    free_ports,
    mail_in_mail_out,
    require,
    running_server,
    send_and_read,
    target_of_this_machine,
    wait_until_ready,
)
from steps.npm import PLATFORMS, platform_of


@pytest.fixture(scope="module")
def platform() -> str:
    """The platform of this machine."""
    return platform_of(target_of_this_machine())


@pytest.fixture(scope="module")
def files(dist, version, platform) -> list[Path]:
    """The packages for this machine."""
    return [artefact(dist, f"npm/{name}-{version}.tgz") for name in ("restante", f"restante-{platform}")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """The variables of npm: an empty home directory and an empty cache. The search path has no other restante."""
    home = tmp_path_factory.mktemp("home")
    directories = [str(Path(require(program)).parent) for program in ("npm", "node", "sh")]
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join(dict.fromkeys(directories)),
        "npm_config_cache": str(home / "cache"),
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
    }


def install(directory: Path, environment: dict[str, str], *files: Path) -> Path:
    """Installs packages in an empty project. Returns its directory."""
    directory.mkdir()
    (directory / "package.json").write_text('{"name": "project", "version": "1.0.0", "private": true, "type": "module"}\n')
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", *map(str, files)], cwd=directory, env=environment, check=True)
    return directory


@pytest.fixture(scope="module")
def project(tmp_path_factory, files, environment) -> Path:
    """A project with the packages."""
    return install(tmp_path_factory.mktemp("npm") / "project", environment, *files)


@pytest.fixture
def command(project) -> Path:
    """The command that npm has installed."""
    return project / "node_modules" / ".bin" / "restante"


def test_npx_runs_the_program(project, environment, version):
    output = subprocess.run(
        ["npx", "restante", "--version"], cwd=project, env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert output.split()[:2] == ["restante", version]


def test_npx_starts_the_server(project, environment):
    """npx does not wait for the end of the program if it gets a signal, but the program ends."""
    smtp, web = free_ports(2)
    flags = [f"--smtp-addr=127.0.0.1:{smtp}", f"--web-addr=127.0.0.1:{web}", "--pop3-addr=", "--imap-addr="]
    npx = subprocess.Popen(["npx", "restante", *flags], cwd=project, env=environment, start_new_session=True)
    try:
        wait_until_ready(f"http://127.0.0.1:{web}", npx)
        send_and_read(smtp, f"http://127.0.0.1:{web}")
        npx.terminate()
        npx.wait(DEADLINE)
        deadline = time.monotonic() + DEADLINE
        while is_listening(web):
            assert time.monotonic() < deadline, "the server still runs"
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(npx.pid, signal.SIGKILL)
        npx.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_command_starts_the_server(command, environment):
    mail_in_mail_out([command], environment)


def test_the_command_returns_the_exit_status(command, environment):
    wrong = subprocess.run([command, "--smtp-timeout=soon"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "smtp.timeout" in wrong.stderr


def test_ctrl_c_in_a_terminal_is_one_request(command, environment, tmp_path):
    """The terminal sends the signal to the command and to the program. The server completes a message that it receives."""
    log = tmp_path / "log"
    smtp, web = free_ports(2)
    flags = [f"--smtp-addr=127.0.0.1:{smtp}", f"--web-addr=127.0.0.1:{web}", "--pop3-addr=", "--imap-addr=", f"--logfile={log}"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command, [str(command), *flags], environment)
    try:
        wait_for_text(log, "HTTP listening on")
        client = smtplib.SMTP("127.0.0.1", smtp, timeout=DEADLINE)
        client.ehlo()
        client.mail("shop@example.org")
        client.rcpt("anna@example.org")
        assert client.docmd("DATA")[0] == 354
        os.write(terminal, b"\x03")
        wait_for_text(log, "shutting down")
        client.send("Subject: last\r\n\r\nx\r\n.\r\n")
        assert client.getreply()[0] == 250
        client.close()
        _, status = os.waitpid(pid, 0)
        pid = 0
        assert os.waitstatus_to_exitcode(status) == 0
        assert "second signal" not in log.read_text()
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)


def wait_for_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{text!r} is not in the log"
        time.sleep(0.05)


def test_the_client_reads_messages(project, environment):
    code = """
        import { Restante } from "restante";
        const mail = await new Restante().mailbox("anna").waitForMessage();
        console.log(mail.subject);
    """
    with running_server([project / "node_modules" / ".bin" / "restante"], environment) as (smtp, url):
        send_and_read(smtp, url)
        output = run_module(project, dict(environment, RESTANTE_SERVER=url), code)
    assert output == "Your order\n"


def test_the_client_starts_a_server(project, environment):
    code = """
        import { start } from "restante/server";
        const restante = await start();
        await restante.mailbox("anna").inject({ from: "shop@example.org", subject: "Your order" });
        console.log((await restante.mailbox("anna").waitForMessage()).subject);
        await restante.stop();
    """
    assert run_module(project, environment, code) == "Your order\n"


def run_module(project: Path, environment: dict[str, str], code: str) -> str:
    """Runs an ES module in the project. Returns its output."""
    module = project / "module.js"
    module.write_text(code)
    return subprocess.run(
        ["node", module], cwd=project, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE
    ).stdout


@pytest.mark.parametrize("named", [False, True])
def test_the_program_can_be_elsewhere(tmp_path, files, environment, project, platform, version, named):
    """Without the package of the platform, the program of PATH or of RESTANTE_PROGRAM is used."""
    alone = install(tmp_path / "project", environment, files[0])
    command = alone / "node_modules" / ".bin" / "restante"
    missing = subprocess.run([command], env=environment, capture_output=True, text=True)
    assert missing.returncode == 1
    assert f"the package @restante/{platform} is missing" in missing.stderr
    assert "npm install --include=optional" in missing.stderr
    program = project / "node_modules" / "@restante" / platform / "bin" / "restante"
    # The command itself is in the path, too.
    path = os.pathsep.join([str(command.parent), environment["PATH"], *([] if named else [str(program.parent)])])
    found = dict(environment, PATH=path, **({"RESTANTE_PROGRAM": str(program)} if named else {}))
    output = subprocess.run([command, "--version"], env=found, check=True, capture_output=True, text=True).stdout
    assert output.split()[:2] == ["restante", version]


def test_uninstall_leaves_nothing(tmp_path, files, environment, platform):
    directory = install(tmp_path / "project", environment, *files)
    remove = ["npm", "uninstall", "--no-audit", "--no-fund", "restante", f"@restante/{platform}"]
    subprocess.run(remove, cwd=directory, env=environment, check=True)
    left = {path.name for path in (directory / "node_modules").rglob("*") if not path.is_dir()}
    # The list of npm itself.
    assert left <= {".package-lock.json"}


def test_the_package_depends_on_all_platforms(dist, version):
    with tarfile.open(artefact(dist, f"npm/restante-{version}.tgz")) as package:
        manifest = json.load(package.extractfile("package/package.json"))
        names = package.getnames()
    assert manifest["version"] == version
    assert manifest["optionalDependencies"] == {f"@restante/{platform}": version for platform in PLATFORMS}
    for entry in manifest["exports"].values():
        assert {"package" + entry["types"][1:], "package" + entry["default"][1:]} <= set(names)


def test_the_package_of_a_platform(target, dist, version):
    platform = platform_of(target)
    with tarfile.open(artefact(dist, f"npm/restante-{platform}-{version}.tgz")) as package:
        manifest = json.load(package.extractfile("package/package.json"))
        program = package.getmember(f"package/bin/{target.program}")
    assert [manifest["os"], manifest["cpu"]] == [[part] for part in platform.split("-")]
    assert program.mode == 0o755
