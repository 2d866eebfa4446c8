"""The packages of PyPI: installed in a virtual environment from the files, without network."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import DEADLINE, ROOT, artefact, mail_in_mail_out, missing, target_of_this_machine
from steps.pypi import build_client_source, build_client_wheel, platform_tags, python_version
from steps.release import Release, ReleaseError

# Builds the source archive of the client.
SETUPTOOLS = "setuptools==80.9.0"


def wheel_name(name: str, version: str, tags: list[str]) -> str:
    return f"pypi/{name}-{python_version(version)}-py3-none-{'.'.join(tags)}.whl"


@pytest.fixture(scope="module")
def wheels(dist, version) -> list[Path]:
    """The wheels for this machine: client and server."""
    tags = platform_tags(target_of_this_machine())
    return [artefact(dist, wheel_name("restante", version, ["any"])), artefact(dist, wheel_name("restante_server", version, tags))]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """The variables of the tests. No setting of pip or of Python has an effect."""
    names = ("PIP_", "PYTHON", "RESTANTE_", "INBUCKET_", "VIRTUAL_ENV", "PYTEST_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return dict(variables, PYTHONNOUSERSITE="1", PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")


def new_environment(directory: Path, *, with_packages: bool = False) -> Path:
    """Creates a virtual environment. Returns the directory of its programs."""
    venv.create(directory, with_pip=True, system_site_packages=with_packages)
    return directory / "bin"


def pip(programs: Path, environment: dict[str, str], *arguments) -> None:
    subprocess.run([programs / "python", "-m", "pip", *map(str, arguments)], env=environment, check=True)


@pytest.fixture(scope="module")
def programs(tmp_path_factory, dist, wheels, environment) -> Path:
    """The programs of a virtual environment in which both packages are installed."""
    directory = new_environment(tmp_path_factory.mktemp("pypi") / "venv")
    pip(directory, environment, "install", "--no-index", "--find-links", dist / "pypi", "restante[server]")
    return directory


def run(programs: Path, environment: dict[str, str], *arguments: str) -> str:
    """Runs Python in a virtual environment. Returns its output."""
    return subprocess.run(
        [programs / "python", *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=DEADLINE
    ).stdout


@pytest.mark.parametrize("arguments", [["restante"], ["python", "-m", "restante_server"]])
def test_the_program_has_the_version(programs, environment, version, arguments):
    command = [programs / arguments[0], *arguments[1:], "--version"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert output.split()[:2] == ["restante", version]


def test_the_program_receives_and_returns_a_message(programs, environment):
    mail_in_mail_out([programs / "restante"], environment)


def test_the_module_receives_and_returns_a_message(programs, environment):
    mail_in_mail_out([programs / "python", "-m", "restante_server"], environment)


def test_the_client_starts_the_server(programs, environment):
    code = """
import smtplib, restante
with restante.server() as r:
    with smtplib.SMTP(*r.smtp) as smtp:
        smtp.sendmail("shop@example.org", ["anna@example.org"], "Subject: Your order\\r\\n\\r\\nx\\r\\n")
    print(r.mailbox("anna").wait().subject)
"""
    # Not by PATH.
    assert run(programs, dict(environment, PATH=os.devnull), "-c", code) == "Your order\n"


def test_the_first_example_of_the_readme_works(programs, environment):
    assert "from restante import Restante\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert run(programs, environment, "-c", "from restante import Restante; print(Restante().url)") == "http://localhost:9000\n"


@pytest.mark.parametrize("options", [["--target", "packages"], ["--prefix", "packages"]])
def test_the_program_is_found_in_other_directories(tmp_path, programs, wheels, environment, options):
    option, directory = options[0], tmp_path / options[1]
    pip(programs, environment, "install", "--no-index", "--ignore-installed", option, directory, wheels[1])
    [module] = [path.parent.parent for path in directory.rglob("restante_server/__init__.py")]
    isolated = dict(environment, PYTHONPATH=str(module))
    path = Path(run(programs, isolated, "-c", "import restante_server; print(restante_server.binary())").strip())
    assert path.is_relative_to(directory) and os.access(path, os.X_OK)


def test_uninstall_leaves_nothing(tmp_path, dist, wheels, environment):
    programs = new_environment(tmp_path / "venv")
    before = sorted(tmp_path.rglob("*"))
    pip(programs, environment, "install", "--no-index", "--no-compile", "--find-links", dist / "pypi", "restante[server]")
    assert (programs / "restante").is_file()
    pip(programs, environment, "uninstall", "--yes", "restante", "restante-server")
    created = [path for path in tmp_path.rglob("*") if path not in set(before) and "__pycache__" not in path.parts]
    assert created == []


def test_the_client_alone_names_the_server(tmp_path, wheels, environment):
    programs = new_environment(tmp_path / "venv")
    pip(programs, environment, "install", "--no-index", wheels[0])
    code = "import restante\ntry:\n    restante.start()\nexcept restante.StartError as error:\n    print(error)"
    assert "pip install restante[server]" in run(programs, dict(environment, PATH=os.devnull), "-c", code)


def test_the_tests_of_the_client_pass_when_it_is_installed(tmp_path, wheels, environment, dist, version):
    """pytest loads the fixtures of the installed package; the tests must not load them again."""
    if subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True).returncode != 0:
        missing("pytest is not installed")
    programs = new_environment(tmp_path / "venv", with_packages=True)
    # A virtual environment has the packages of the system, but not of another virtual environment.
    paths = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    pip(programs, environment, "install", "--no-index", *wheels)
    source = artefact(dist, f"pypi/restante-{python_version(version)}.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path)
    tests = tmp_path / f"restante-{python_version(version)}" / "tests"
    (tests.parent / "src").rename(tests.parent / "unused")
    command = [programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    variables = dict(environment, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_wheels_list_their_files(dist):
    wheels = sorted((dist / "pypi").glob("*.whl"))
    if not wheels:
        missing("there are no wheels")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            [record] = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
            rows = list(csv.reader(archive.read(record).decode().splitlines()))
            assert sorted(row[0] for row in rows) == sorted(archive.namelist())
            for name, checksum, size in rows:
                if name != record:
                    content = archive.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                    assert (checksum, size) == (f"sha256={expected}", str(len(content)))


def test_the_wheel_of_a_platform(target, dist, version):
    with zipfile.ZipFile(artefact(dist, wheel_name("restante_server", version, platform_tags(target)))) as wheel:
        [program] = [info for info in wheel.infolist() if info.filename.endswith(".data/scripts/restante")]
        [tags] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/WHEEL")]
    assert program.external_attr >> 16 & 0o777 == 0o755
    assert [line[5:] for line in tags.splitlines() if line.startswith("Tag: ")] == [f"py3-none-{tag}" for tag in platform_tags(target)]


def test_the_source_of_the_client_can_be_built(tmp_path, dist, version, environment):
    """setuptools makes the same wheel of the source: the same files, entry points and requirements."""
    source = artefact(dist, f"pypi/restante-{python_version(version)}.tar.gz")
    try:
        programs = Release(out=dist, targets=[]).python_tools("setuptools", [SETUPTOOLS])
    except ReleaseError as error:
        missing(f"setuptools cannot be installed: {error}")
    pip(programs, environment, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", tmp_path, source)
    [built] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as theirs, zipfile.ZipFile(artefact(dist, f"pypi/{built.name}")) as ours:
        for archive in (theirs, ours):
            assert archive.testzip() is None
        assert code_of(theirs) == code_of(ours)
        assert requirements_of(theirs) == requirements_of(ours)


@pytest.mark.parametrize("number, expected", [("1.2.3", "1.2.3"), ("1.2.0-rc.1", "1.2.0rc1")])
def test_the_client_requires_the_server_of_the_same_version(tmp_path, number, expected):
    release = Release(out=tmp_path, targets=[])
    release.version = number
    (tmp_path / "pypi").mkdir()
    requirement = f"Requires-Dist: restante-server=={expected}; extra == 'server'"
    with zipfile.ZipFile(build_client_wheel(release)) as wheel:
        assert requirement in requirements_of(wheel)
    with tarfile.open(build_client_source(release)) as source:
        metadata, project = (
            source.extractfile(f"restante-{expected}/{name}").read().decode() for name in ("PKG-INFO", "pyproject.toml")
        )
    assert requirement in metadata.replace('"', "'").splitlines()
    assert f'server = ["restante-server=={expected}"]' in project.splitlines()
    assert f'version = "{expected}"' in project.splitlines()


def code_of(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    """Returns the modules and the entry points of a wheel."""
    wanted = [name for name in wheel.namelist() if name.startswith("restante/") or name.endswith("entry_points.txt")]
    return {name: wheel.read(name).strip() for name in wanted}


def requirements_of(wheel: zipfile.ZipFile) -> list[str]:
    """Returns the names and requirements in the metadata of a wheel."""
    [metadata] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]
    wanted = ("Name:", "Version:", "Summary:", "Requires-", "Provides-Extra:")
    return sorted(line.replace('"', "'") for line in metadata.split("\n\n")[0].splitlines() if line.startswith(wanted))


@pytest.mark.parametrize("version, expected", [("1.2.3", "1.2.3"), ("1.2.0-rc.1", "1.2.0rc1"), ("0.3.0-beta2", "0.3.0b2")])
def test_versions_of_python(version, expected):
    assert python_version(version) == expected


def test_a_version_without_a_form_is_an_error():
    with pytest.raises(ReleaseError, match="1.0.0-nightly"):
        python_version("1.0.0-nightly")
