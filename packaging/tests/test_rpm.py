"""The RPM package: its files and scripts, and installation, upgrade and removal. rpm of this machine installs it in a system of
the fixture `root`, which knows no RPM packages. Its scripts run there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import TOOLS, artefact, emulator, mail_in_mail_out, require
from linux_system import SETTINGS, assert_is_installed, assert_mail_is_stored, file, receive_mail, run
from steps import rpm
from steps.release import Release

# The version of the package that is upgraded. It sorts before every release.
OLD_VERSION = "0.0.1"


@pytest.fixture(scope="module")
def package(target, dist, version) -> Path:
    return artefact(dist, rpm.name(version, target))


def query(package: Path, *options: str) -> str:
    command = [require("rpm"), "--query", "--nosignature", *options, "--package", str(package)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rpm_in(root: Path, *arguments) -> str:
    """Runs rpm for the system."""
    return run([require("rpm"), "--root", root, "--dbpath", "/var/lib/rpm", *arguments])


def install(root: Path, action: str, package: Path) -> None:
    # The database of rpm does not contain the packages of Debian.
    rpm_in(root, action, "--nodeps", "--nosignature", package)


def unpack(package: Path, directory: Path) -> None:
    with subprocess.Popen([require("rpm2cpio"), str(package)], stdout=subprocess.PIPE) as archive:
        command = [require("cpio"), "--extract", "--make-directories", "--quiet"]
        subprocess.run(command, stdin=archive.stdout, cwd=directory, check=True)


def old_package(package: Path, target, directory: Path) -> Path:
    """Builds a package with the same program and a lower version."""
    unpacked = directory / "unpacked"
    unpacked.mkdir()
    unpack(package, unpacked)
    program = directory / "binaries" / target.triple / target.program
    program.parent.mkdir(parents=True)
    shutil.copy(unpacked / "usr/bin/restante", program)
    release = Release(out=directory, targets=[target.triple], binaries=directory / "binaries")
    release.tools = TOOLS
    release.work = directory / "work"
    return rpm.build_package(release, target, OLD_VERSION, compression="none")


def test_the_package_names_its_version_and_processor(package, target, version):
    assert query(package, "--queryformat", "%{NAME} %{VERSION} %{ARCH}") == f"restante {version.replace('-', '~')} {target.arch}"


def test_files_have_owners_and_permissions(package):
    listing = query(package, "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]").splitlines()
    assert "-rwxr-xr-x root root /usr/bin/restante" in listing
    assert "-rw-r----- root restante /etc/restante/restante.toml" in listing
    assert "-rw-r--r-- root root /usr/lib/systemd/system/restante.service" in listing
    assert "-rw-r--r-- root root /usr/share/man/man1/restante.1.gz" in listing
    assert query(package, "--configfiles").split() == ["/etc/restante/restante.toml"]


def test_the_scripts_are_valid_shell_scripts(package):
    for tag in ("PREIN", "POSTIN", "PREUN", "POSTUN"):
        script = query(package, "--queryformat", f"%{{{tag}}}")
        assert "restante" in script, tag
        subprocess.run(["sh", "-n"], input=script, check=True, text=True)


def test_times_are_that_of_the_release(package):
    times = query(package, "--queryformat", "%{BUILDTIME}\n[%{FILEMTIMES}\n]").split()
    assert len(set(times)) == 1
    assert query(package, "--queryformat", "%{BUILDHOST}") in ("(none)", "localhost")


def test_the_program_receives_and_returns_a_message(package, target, tmp_path):
    unpack(package, tmp_path)
    program = [*emulator(target), tmp_path / "usr/bin/restante"]
    mail_in_mail_out([*program, "--data", tmp_path / "mail"])


def test_the_installed_service_receives_and_returns_a_message(root, package):
    install(root, "--install", package)
    assert_is_installed(root)
    receive_mail(root)
    # Compares all files with the package.
    assert rpm_in(root, "--verify", "--nodeps", "restante") == ""


def test_an_upgrade_keeps_mail_and_changed_settings(root, package, target, tmp_path):
    install(root, "--install", old_package(package, target, tmp_path))
    receive_mail(root)
    settings = file(root, SETTINGS)
    changed = settings.read_text().replace('#loglevel = "info"', 'loglevel = "warn"')
    assert changed != settings.read_text()
    settings.write_text(changed)
    install(root, "--upgrade", package)
    assert rpm_in(root, "--query", "--queryformat", "%{VERSION}", "restante") != OLD_VERSION
    assert settings.read_text() == changed
    assert_is_installed(root)
    assert_mail_is_stored(root)


def test_a_removal_keeps_mail_and_changed_settings(root, package):
    install(root, "--install", package)
    receive_mail(root)
    with file(root, SETTINGS).open("a") as settings:
        settings.write("# A change.\n")
    rpm_in(root, "--erase", "--nodeps", "restante")
    assert not file(root, "/usr/bin/restante").exists()
    assert any(file(root, "/var/lib/restante").iterdir())
    assert file(root, f"{SETTINGS}.rpmsave").read_text().endswith("# A change.\n")


def test_a_removal_deletes_the_directories_of_the_package(root, package):
    directories = ["/etc/restante", "/usr/share/doc/restante", "/usr/share/licenses/restante"]
    install(root, "--install", package)
    assert [directory for directory in directories if file(root, directory).is_dir()] == directories
    rpm_in(root, "--erase", "--nodeps", "restante")
    assert [directory for directory in directories if file(root, directory).exists()] == []
