"""The Debian package: installation, upgrade, removal and purge in a fresh Debian."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, artefact, require
from linux_system import SETTINGS, UNIT, assert_is_installed, assert_mail_is_stored, file, in_root, receive_mail, run
from steps import debian

# The version of the package that is upgraded. It sorts before every release.
OLD_VERSION = "0.0.1-1"

OLD_COMMENT = "# A comment in the settings of the earlier version.\n"


@pytest.fixture
def package(target, dist, version) -> Path:
    return artefact(dist, debian.name(version, target))


@pytest.fixture
def old_package(package, tmp_path) -> Path:
    """The same program with a lower version and other settings."""
    directory = tmp_path / "old"
    run([require("dpkg-deb"), "--raw-extract", package, directory])
    control = directory / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {OLD_VERSION}", control.read_text(), flags=re.MULTILINE))
    settings = file(directory, SETTINGS)
    settings.write_text(settings.read_text() + OLD_COMMENT)
    path = tmp_path / "old.deb"
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", directory, path])
    return path


def install(root: Path, package: Path) -> str:
    shutil.copy(package, root / "tmp")
    # Keeps settings that were changed, as apt does when it cannot ask.
    return in_root(root, "dpkg", "--force-confdef", "--install", f"/tmp/{package.name}")


def installed_version(root: Path) -> str:
    return in_root(root, "dpkg-query", "--show", "--showformat=${Version}", "restante")


def test_the_installed_service_receives_and_returns_a_message(root, package):
    install(root, package)
    assert_is_installed(root)
    receive_mail(root)
    assert file(root, "/etc/systemd/system/multi-user.target.wants/restante.service").is_symlink(), "the service is enabled"


def test_an_upgrade_keeps_mail_and_replaces_unchanged_settings(root, package, old_package):
    install(root, old_package)
    assert installed_version(root) == OLD_VERSION
    receive_mail(root)
    install(root, package)
    assert installed_version(root) != OLD_VERSION
    assert file(root, SETTINGS).read_text() == (ROOT / "packaging/restante.toml").read_text()
    assert_is_installed(root)
    assert_mail_is_stored(root)


def test_an_upgrade_keeps_changed_settings_and_permissions(root, package, old_package):
    install(root, old_package)
    settings = file(root, SETTINGS)
    changed = settings.read_text().replace('#loglevel = "info"', 'loglevel = "warn"')
    assert changed != settings.read_text()
    settings.write_text(changed)
    in_root(root, "chmod", "600", SETTINGS)
    in_root(root, "chown", "restante", SETTINGS)
    install(root, package)
    assert settings.read_text() == changed
    assert in_root(root, "stat", "--format=%U %a", SETTINGS).strip() == "restante 600"
    receive_mail(root)


def test_a_removal_keeps_mail_and_settings_and_a_purge_deletes_them(root, package):
    install(root, package)
    receive_mail(root)
    in_root(root, "dpkg", "--remove", "restante")
    assert not file(root, "/usr/bin/restante").exists()
    assert any(file(root, "/var/lib/restante").iterdir())
    assert file(root, SETTINGS).exists()
    in_root(root, "dpkg", "--purge", "restante")
    for path in ("/var/lib/restante", "/var/log/restante", "/etc/restante"):
        assert not file(root, path).exists(), path


def test_the_unit_has_no_errors(root, package):
    install(root, package)
    output = run([require("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", f"--root={root}", UNIT])
    assert output == ""


def test_the_unit_restricts_the_service():
    command = [require("systemd-analyze"), "security", "--offline=true", "--threshold=20", "--no-pager"]
    run([*command, ROOT / "packaging/restante.service"])
