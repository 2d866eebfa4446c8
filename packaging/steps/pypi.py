"""pypi/: the package restante (Python client) as wheel and source, and restante-server, a wheel with the program for each platform."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from .archive import EXECUTABLE, Entry, write_tar_gz, write_zip
from .client_files import LICENSES, readme
from .release import ROOT, Release, ReleaseError, Target

CLIENT = ROOT / "clients" / "python"
SERVER = ROOT / "packaging" / "pypi"

# The platform tags of wheels. The programs for Linux are static, so they also run where the C library is musl.
PLATFORMS = {
    "x86_64-unknown-linux-musl": ["manylinux_2_17_x86_64", "musllinux_1_1_x86_64"],
    "aarch64-unknown-linux-musl": ["manylinux_2_17_aarch64", "musllinux_1_1_aarch64"],
    "x86_64-apple-darwin": ["macosx_10_12_x86_64"],
    "aarch64-apple-darwin": ["macosx_11_0_arm64"],
    "x86_64-pc-windows-gnu": ["win_amd64"],
}


def build(release: Release) -> list[Path]:
    (release.out / "pypi").mkdir(exist_ok=True)
    return [build_client_wheel(release), build_client_source(release), *(build_server(release, one) for one in release.targets)]


def python_version(version: str) -> str:
    """Returns a version as PyPI writes it: `1.2.0-rc.1` becomes `1.2.0rc1`."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not found:
        raise ReleaseError(f"the version {version} has no form for PyPI; pre-releases are -alpha.N, -beta.N and -rc.N")
    number, stage, count = found.groups()
    return number + ({"alpha": "a", "beta": "b", "rc": "rc"}[stage] + count if stage else "")


def platform_tags(target: Target) -> list[str]:
    """Returns the platform tags of a wheel."""
    if target.triple not in PLATFORMS:
        raise ReleaseError(f"there is no wheel for {target}: add it to PLATFORMS in packaging/steps/pypi.py")
    return PLATFORMS[target.triple]


def build_server(release: Release, target: Target) -> Path:
    """Writes the wheel with the program for a platform."""
    version = python_version(release.version)
    metadata = metadata_file(
        release,
        name="restante-server",
        summary="A mail server for development and tests that stores mail instead of sending it",
        requires_python=">=3.9",
        description=readme(release, SERVER / "README.md"),
    )
    entries = package_files(release, SERVER / "restante_server", "restante_server")
    entries.append(Entry(f"restante_server-{version}.data/scripts/{target.program}", release.binary(target), EXECUTABLE))
    return write_wheel(release, "restante_server", platform_tags(target), metadata, entries)


def build_client_wheel(release: Release) -> Path:
    """Writes the wheel of the client, as setuptools does by `pyproject.toml`."""
    project = client_project(release)
    entries = package_files(release, CLIENT / "src" / "restante", "restante")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    entries.append(Entry(f"restante-{python_version(release.version)}.dist-info/entry_points.txt", "\n".join(lines).encode()))
    return write_wheel(release, "restante", ["any"], client_metadata(release, project), entries)


def build_client_source(release: Release) -> Path:
    """Writes the source archive of the client."""
    version = python_version(release.version)
    directory = f"restante-{version}"
    entries = [
        Entry(f"{directory}/PKG-INFO", client_metadata(release, client_project(release))),
        Entry(f"{directory}/README.md", readme(release, CLIENT / "README.md")),
        Entry(f"{directory}/pyproject.toml", client_pyproject(release).encode()),
        *(Entry(f"{directory}/{license}", ROOT / license) for license in LICENSES),
        *package_files(release, CLIENT / "src", f"{directory}/src"),
        *package_files(release, CLIENT / "tests", f"{directory}/tests"),
    ]
    path = release.out / "pypi" / f"{directory}.tar.gz"
    write_tar_gz(path, entries, release.source_date_epoch)
    return path


def client_pyproject(release: Release) -> str:
    """Returns the client's `pyproject.toml` with the version of the release. The extra `server` requires the same version."""
    version = python_version(release.version)
    text = (CLIENT / "pyproject.toml").read_text(encoding="utf-8")
    for old, new in (('^version = ".*"$', f'version = "{version}"'), ('"restante-server"', f'"restante-server=={version}"')):
        text, count = re.subn(old, new, text, flags=re.MULTILINE)
        if count != 1:
            raise ReleaseError(f"clients/python/pyproject.toml has {count} matches of {old}, not one")
    return text


def client_project(release: Release) -> dict:
    """Returns the section `[project]` of `client_pyproject`."""
    try:
        import tomllib
    except ModuleNotFoundError:
        # Before Python 3.11.
        from pip._vendor import tomli as tomllib
    return tomllib.loads(client_pyproject(release))["project"]


def client_metadata(release: Release, project: dict) -> bytes:
    """Returns the metadata of the client."""
    extras = []
    for extra, requirements in project["optional-dependencies"].items():
        extras.append(f"Provides-Extra: {extra}")
        extras += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    return metadata_file(
        release,
        name=project["name"],
        summary=project["description"],
        requires_python=project["requires-python"],
        description=readme(release, CLIENT / "README.md"),
        extras=extras,
    )


def metadata_file(
    release: Release, name: str, summary: str, requires_python: str, description: bytes, extras: list[str] | None = None
) -> bytes:
    """Returns the file with the metadata of a package."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {python_version(release.version)}",
        f"Summary: {summary}",
        "License-Expression: MIT OR Apache-2.0",
        *([f"Project-URL: Source, {release.repository}"] if release.repository else []),
        "Classifier: Topic :: Communications :: Email",
        "Classifier: Topic :: Software Development :: Testing",
        f"Requires-Python: {requires_python}",
        *(extras or []),
        *(f"License-File: {license}" for license in LICENSES),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines).encode() + b"\n\n" + description


def package_files(release: Release, directory: Path, name: str) -> list[Entry]:
    """Returns the files of a Python package that are in the source, below this name."""
    files = [path for path in release.tracked_files(directory) if path.suffix == ".py" or path.name == "py.typed"]
    return [Entry(f"{name}/{path.relative_to(directory).as_posix()}", path) for path in files]


def write_wheel(release: Release, name: str, platforms: list[str], metadata: bytes, entries: list[Entry]) -> Path:
    """Writes a wheel with these files, and the list of their checksums."""
    version = python_version(release.version)
    info = f"{name}-{version}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    is_pure = "true" if platforms == ["any"] else "false"
    wheel = f"Wheel-Version: 1.0\nGenerator: restante-packaging\nRoot-Is-Purelib: {is_pure}\n{tags}"
    entries = [
        *entries,
        Entry(f"{info}/METADATA", metadata),
        Entry(f"{info}/WHEEL", wheel.encode()),
        *(Entry(f"{info}/licenses/{license}", ROOT / license) for license in LICENSES),
    ]
    record = "".join(record_line(entry) for entry in sorted(entries, key=lambda entry: entry.name))
    entries.append(Entry(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    path = release.out / "pypi" / f"{name}-{version}-py3-none-{'.'.join(platforms)}.whl"
    write_zip(path, entries, release.source_date_epoch, directories=False)
    return path


def record_line(entry: Entry) -> str:
    """Returns the line of a file in the list of a wheel."""
    content = entry.read()
    checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{entry.name},sha256={checksum},{len(content)}\n"
