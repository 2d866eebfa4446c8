"""The Debian package: installation, removal and purge in a fresh Debian. systemd does not run there, so the tests start
the server with the command of the unit, as its user."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, artefact, missing, require, running_server, send_and_read
from steps import debian
from steps.release import Release

UNIT = "/usr/lib/systemd/system/restante.service"


@pytest.fixture(scope="module")
def release(dist) -> Release:
    return Release(out=dist, targets=[])


@pytest.fixture(scope="module")
def system(release) -> Path:
    """An installed Debian, which tests copy. It is kept for the next run."""
    if os.geteuid() != 0:
        missing("only root can install a Debian system")
    directory = release.work / "debian-bookworm"
    # Written last: it shows that the system is complete.
    complete = directory / "complete"
    if not complete.exists():
        shutil.rmtree(directory, ignore_errors=True)
        # debootstrap mounts /proc in the new system. The mount ends with the namespace.
        command = ["unshare", "--mount", require("debootstrap"), "--variant=minbase", "bookworm", str(directory / "root")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        complete.touch()
    return directory / "root"


@pytest.fixture
def root(target, system, tmp_path) -> Path:
    """A fresh copy of the system."""
    if not target.runs_here:
        pytest.skip(f"this machine cannot run a system for {target.arch}")
    subprocess.run(["cp", "--archive", "--one-file-system", "--reflink=auto", str(system), str(tmp_path / "root")], check=True)
    return tmp_path / "root"


@pytest.fixture
def package(target, dist, version) -> Path:
    return artefact(dist, debian.name(version, target))


def in_root(root: Path, *command: str) -> str:
    """Runs a command in the system and returns its output."""
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    result = subprocess.run(
        ["chroot", str(root), *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def install(root: Path, package: Path) -> str:
    shutil.copy(package, root / "tmp")
    return in_root(root, "dpkg", "--install", f"/tmp/{package.name}")


def unit_setting(root: Path, name: str) -> str:
    """Returns a setting of the unit."""
    (line,) = [line for line in (root / UNIT[1:]).read_text().splitlines() if line.startswith(f"{name}=")]
    return line.split("=", 1)[1]


def service(root: Path):
    """Starts the server as the unit does."""
    user = f"--userspec={unit_setting(root, 'User')}:{unit_setting(root, 'Group')}"
    return running_server(["chroot", user, root, *unit_setting(root, "ExecStart").split()])


def permissions(root: Path, path: str) -> str:
    return in_root(root, "stat", "--format=%U:%G %a", path).strip()


def test_the_installed_service_receives_and_returns_a_message(root, package):
    install(root, package)
    assert permissions(root, "/etc/restante") == "root:restante 750"
    assert permissions(root, "/etc/restante/restante.toml") == "root:restante 640"
    assert permissions(root, "/var/lib/restante") == "restante:restante 700"
    assert permissions(root, "/usr/bin/restante") == "root:root 755"
    user = in_root(root, "getent", "passwd", "restante").strip().split(":")
    assert user[5:] == ["/var/lib/restante", "/usr/sbin/nologin"]
    in_root(root, "restante", "config", "check", "--config", "/etc/restante/restante.toml")
    with service(root) as (smtp, url):
        send_and_read(smtp, url)
    assert (root / "etc/systemd/system/multi-user.target.wants/restante.service").is_symlink(), "the service is enabled"


def test_a_removal_keeps_mail_and_settings_and_a_purge_deletes_them(root, package):
    install(root, package)
    with service(root) as (smtp, url):
        send_and_read(smtp, url)
    in_root(root, "dpkg", "--remove", "restante")
    assert not (root / "usr/bin/restante").exists()
    assert any((root / "var/lib/restante").iterdir())
    assert (root / "etc/restante/restante.toml").exists()
    in_root(root, "dpkg", "--purge", "restante")
    for path in ("var/lib/restante", "var/log/restante", "etc/restante"):
        assert not (root / path).exists(), path


def test_the_unit_is_valid():
    command = [require("systemd-analyze"), "security", "--offline=true", "--threshold=20", "--no-pager"]
    result = subprocess.run([*command, str(ROOT / "packaging/restante.service")], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
