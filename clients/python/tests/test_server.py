"""Tests servers that are started for a test, and the fixtures that start one. They need ``--restante-program``."""

from __future__ import annotations

import os
import signal
import smtplib
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import restante
from restante import process

#: Longer than any step of a test takes, in seconds.
TEST_TIMEOUT = 60


@pytest.fixture
def program(restante_server):
    """The path of the program."""
    if restante_server is None:
        pytest.skip("the tests of servers need --restante-program")
    return restante_server._process.args[0]


def send(smtp: tuple[str, int], to: str = "ann@example.org") -> None:
    with smtplib.SMTP(*smtp) as session:
        session.sendmail("shop@example.com", [to], "Subject: Welcome\r\n\r\nYour code is 482913.\r\n")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process whose parent has ended may wait for another process to read its status.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until_ended(pid: int) -> None:
    deadline = time.monotonic() + TEST_TIMEOUT
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.02)


def test_server_runs_for_a_block(program):
    with restante.server(program=program) as r:
        send(r.smtp)
        assert r.mailbox("ann").wait().code() == "482913"
        assert r.url.startswith("http://127.0.0.1:") and r.pop3 == r.addresses["POP3"]
        assert r.imap == r.addresses["IMAP"]
        assert r.about()["smtp"]["port"] == r.smtp[1]
    wait_until_ended(r.pid)
    assert "shutting down" in r.log


def test_start_and_stop(program):
    first, second = restante.start(program=program), restante.start(program=program)
    assert first.smtp != second.smtp
    send(first.smtp)
    assert len(list(first.messages())) == 1 and list(second.messages()) == []
    for r in (first, second):
        r.stop()
        r.stop()
    assert not is_running(first.pid) and not is_running(second.pid)


def test_settings_script_and_data_directory(program, tmp_path):
    script = tmp_path / "rules.lua"
    script.write_text(
        "function inbucket.before.message_stored(message)\n"
        '  message.subject = "changed"\n'
        "  return message\n"
        "end\n"
    )
    options = {"program": program, "data": tmp_path / "mail", "lua": script}
    with restante.server(**options, settings={"mailboxnaming": "full", "smtp.acceptdomains": ["example.org", "x.test"]}) as r:
        send(r.smtp)
    with restante.server(program=program, data=tmp_path / "mail", settings={"pop3.addr": ""}) as r:
        [mail] = r.messages()
        assert (mail.mailboxes, mail.subject) == (["ann@example.org"], "changed")
        with pytest.raises(AttributeError, match="pop3.addr is empty"):
            r.pop3


def test_variables_and_files_of_the_environment_are_not_used(program, tmp_path, monkeypatch):
    monkeypatch.setenv("RESTANTE_TOKEN", "rst_of_another_server")
    monkeypatch.setenv("RESTANTE_SMTP_ADDR", "nowhere")
    monkeypatch.chdir(tmp_path)
    Path("restante.lua").write_text("error('not to be loaded')")
    with restante.server(program=program) as r:
        assert list(r.messages()) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"smtp.timeout": "soon"}, 'smtp.timeout = "soon"'), ({"nosuch.setting": 1}, "--nosuch-setting")],
)
def test_start_error_contains_the_log(program, settings, expected):
    with pytest.raises(restante.StartError, match="ended with status 2. The end of its log:\n") as failure:
        restante.start(program=program, settings=settings)
    assert expected in str(failure.value) and expected in failure.value.log


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_start_timeout(tmp_path):
    script = tmp_path / "restante"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    with pytest.raises(restante.StartError, match="did not start within 0.1 s"):
        restante.start(program=script, timeout=0.1)


@pytest.mark.parametrize("settings", [{"logfile": "x"}, {"loglevel": "error"}, {"stopwithstdin": False}])
def test_settings_that_are_reserved(settings):
    with pytest.raises(ValueError, match="cannot be changed"):
        restante.start(program="/nonexistent", settings=settings)


def test_server_without_http_is_refused():
    with pytest.raises(ValueError, match="web.addr is empty"):
        restante.start(program="/nonexistent", settings={"web.addr": ""})


@pytest.mark.parametrize("address", ["unix:/tmp/web.sock", ["unix:/tmp/a.sock", "unix:/tmp/b.sock"], "unix:/a, unix:/b,"])
def test_server_with_only_unix_sockets_for_http_is_refused(address):
    with pytest.raises(ValueError, match="web.addr = .unix:.* has no TCP address"):
        restante.start(program="/nonexistent", settings={"web.addr": address})


@pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")
def test_server_with_a_unix_socket_and_a_port_for_http(program, tmp_path):
    with restante.server(program=program, settings={"web.addr": [f"unix:{tmp_path / 'web.sock'}", "127.0.0.1:0"]}) as r:
        assert list(r.messages()) == []
    tls = {"web.tlsaddr": "127.0.0.1:0", "web.tlscert": "self-signed"}
    with restante.server(program=program, settings={"web.addr": f"unix:{tmp_path / 'web.sock'}", **tls}) as r:
        assert r.url.startswith("https://127.0.0.1:")


def test_program_is_found(tmp_path, monkeypatch):
    monkeypatch.delenv("RESTANTE_PROGRAM", raising=False)
    monkeypatch.setattr(process, "packaged_program", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(restante.StartError, match=r"pip install restante\[server\]"):
        restante.start()
    in_path = tmp_path / ("restante.exe" if sys.platform == "win32" else "restante")
    in_path.touch(mode=0o755)
    assert process.find_program() == str(in_path)
    monkeypatch.setattr(process, "packaged_program", lambda: "packaged")
    assert process.find_program() == "packaged"
    monkeypatch.setenv("RESTANTE_PROGRAM", "variable")
    assert process.find_program() == "variable"
    assert process.find_program(tmp_path / "argument") == str(tmp_path / "argument")
    with pytest.raises(restante.StartError, match="Cannot run .*argument"):
        restante.start(program=tmp_path / "argument")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_exception_has_the_log_as_a_note(program):
    with pytest.raises(KeyError) as failure, restante.server(program=program):
        raise KeyError("x")
    assert "HTTP listening on tcp4 127.0.0.1:" in failure.value.__notes__[0]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)"])
def test_server_ends_with_its_parent(program, end):
    code = f"import os, signal, sys, restante; print(restante.start(program={program!r}).pid, flush=True); {end}"
    source = str(Path(restante.__file__).parent.parent)
    parent = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, stdout=subprocess.PIPE, timeout=TEST_TIMEOUT
    )
    wait_until_ended(int(parent.stdout))


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_reaches_only_the_tests(program):
    with restante.server(program=program) as r:
        assert os.getpgid(r.pid) != os.getpgid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_stop_after_the_server_has_ended(program):
    r = restante.start(program=program)
    os.kill(r.pid, signal.SIGKILL)
    r._process.wait(TEST_TIMEOUT)
    r.stop()
    with pytest.raises(restante.RestanteError, match="the request to .* failed"):
        r.about()


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_stop_while_a_forked_process_runs(program):
    r = restante.start(program=program)
    child = os.fork()
    if child == 0:
        # This process has a copy of the pipe to the server.
        time.sleep(TEST_TIMEOUT)
        os._exit(0)
    try:
        r.stop()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    # A server that does not stop in time is killed.
    assert r._process.returncode == 0
    assert "shutting down" in r.log and "second signal" not in r.log


# The fixtures


@pytest.fixture
def run(pytester, monkeypatch, restante_server):
    """Runs pytest on a test, with the fixtures and these variables and arguments."""
    source = str(Path(restante.__file__).parent.parent)

    def run_test(code: str, *arguments: str, **variables: str):
        for name in ("RESTANTE_SERVER", "RESTANTE_PROGRAM", "PYTEST_ADDOPTS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1", **variables}.items():
            monkeypatch.setenv(name, value)
        pytester.makepyfile(textwrap.dedent(code))
        # The entry point of an installed package has the same name.
        loaded = ["-p", "restante.pytest_plugin"] if is_source_tree() else []
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *loaded, *arguments, timeout=TEST_TIMEOUT)

    return run_test


def is_source_tree() -> bool:
    """Returns whether the fixtures come from the source tree, without an entry point."""
    return Path(restante.__file__).parent.parent == Path(__file__).parent.parent / "src"


USES_A_SERVER = """
    import smtplib
    def test_mail(mailbox, restante_smtp):
        with smtplib.SMTP(*restante_smtp) as smtp:
            smtp.sendmail("a@x.org", [mailbox.address], "Subject: hello\\r\\n\\r\\nx\\r\\n")
        assert mailbox.wait().subject == "hello"
    """
PRINTS_THE_SERVER = """
    def test_url(restante, restante_server):
        print("URL", restante.url, restante_server is not None)
    """


def test_fixture_starts_a_server_for_a_program(run, program):
    for result in (run(USES_A_SERVER, "--restante-program", program), run(USES_A_SERVER, RESTANTE_PROGRAM=program)):
        result.assert_outcomes(passed=1)


def test_fixtures_lease_a_run(run, program, pytester):
    code = """
        def test_run(restante, restante_run, mailbox):
            assert restante is restante_run and mailbox.address.endswith("@" + restante_run.domain)
            assert [one["name"] for one in restante.mailboxes()] == []
        """
    result = run(textwrap.dedent(USES_A_SERVER) + textwrap.dedent(code), "--restante-lease", "--restante-program", program)
    result.assert_outcomes(passed=2)


def test_fixtures_use_the_domain_of_restante_run(run):
    code = """
        def test_address(mailbox):
            print("ADDRESS", mailbox.address.partition("@")[2])
            mailbox.purge = lambda: None
        """
    result = run(code, "-s", RESTANTE_SERVER="http://b.test:2", RESTANTE_DOMAIN="run-x.test")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*ADDRESS run-x.test"])


def test_fixture_starts_the_server_of_the_package(run, program, pytester):
    pytester.makepyfile(restante_server=f"def binary():\n    return {str(program)!r}\n")
    result = run(USES_A_SERVER, PYTHONPATH=os.pathsep.join([str(Path(restante.__file__).parent.parent), str(pytester.path)]))
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (["--restante-server", "http://a.test:1"], {"RESTANTE_PROGRAM": "p", "RESTANTE_SERVER": "http://b.test:2"}, "http://a.test:1"),
        ([], {"RESTANTE_SERVER": "http://b.test:2"}, "http://b.test:2"),
        ([], {}, "http://localhost:9000"),
    ],
)
def test_fixture_uses_an_existing_server(run, arguments, variables, expected, pytester):
    if expected.startswith("http://b"):
        # An installed program makes no difference if a server is set.
        pytester.makepyfile(restante_server="def binary():\n    return 'nowhere'\n")
        variables["PYTHONPATH"] = os.pathsep.join([str(Path(restante.__file__).parent.parent), str(pytester.path)])
    elif process.packaged_program() is not None and not arguments:
        pytest.skip("restante-server is installed")
    result = run(PRINTS_THE_SERVER, "-s", *arguments, **variables)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*URL {expected} False"])


def test_options_of_the_server_can_be_set(run, program, pytester):
    pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def restante_options():\n"
        "    return {'settings': {'mailboxnaming': 'domain'}}\n"
    )
    code = """
        def test_naming(restante):
            assert restante.mailbox("ann@x.org").inject(subject="x").mailbox == "x.org"
        """
    run(code, "--restante-program", program).assert_outcomes(passed=1)


def test_report_of_a_failed_test_has_the_log(run, program):
    code = """
        def test_fails(restante):
            assert False
        def test_without_server():
            assert False
        """
    result = run(code, "--restante-program", program)
    result.assert_outcomes(failed=2)
    assert result.stdout.str().count("Log of the restante server") == 1
    result.stdout.fnmatch_lines(["*HTTP listening on tcp4 127.0.0.1:*"])


def test_error_of_a_program_that_does_not_start(run):
    result = run(PRINTS_THE_SERVER, "--restante-program", "/nonexistent/restante")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*StartError: Cannot run /nonexistent/restante*"])
