"""npm/: the package restante (TypeScript client and command), and a package with the program for each platform."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .archive import EXECUTABLE, READABLE, Entry, write_tar_gz
from .client_files import LICENSES, readme
from .release import ROOT, Release, ReleaseError, Target

CLIENT = ROOT / "clients" / "typescript"

# The platforms by the names that Node has for them, with the targets of their programs. The command of the package uses the same names.
PLATFORMS = {
    "linux-x64": "x86_64-unknown-linux-musl",
    "linux-arm64": "aarch64-unknown-linux-musl",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
    "win32-x64": "x86_64-pc-windows-gnu",
}


def build(release: Release) -> list[Path]:
    (release.out / "npm").mkdir(exist_ok=True)
    return [build_client(release), *(build_platform(release, target) for target in release.targets)]


def platform_of(target: Target) -> str:
    """Returns the name of a platform."""
    for name, triple in PLATFORMS.items():
        if target.triple == triple:
            return name
    raise ReleaseError(f"there is no npm package for {target}: add it to PLATFORMS in packaging/steps/npm.py")


def build_platform(release: Release, target: Target) -> Path:
    """Writes the package with the program for a platform."""
    platform = platform_of(target)
    system, processor = platform.split("-")
    name = f"@restante/{platform}"
    manifest = {
        "name": name,
        "version": release.version,
        "description": f"The program of the package restante for {platform}",
        "license": "MIT OR Apache-2.0",
        **repository(release, "packaging"),
        "os": [system],
        "cpu": [processor],
        "files": ["bin"],
        # Package managers that keep packages compressed have to unpack this one.
        "preferUnplugged": True,
    }
    text = f"# {name}\n\nThe program of the package [restante](https://www.npmjs.com/package/restante) for this platform.\n"
    entries = [
        Entry("package/README.md", text.encode()),
        Entry(f"package/bin/{target.program}", release.binary(target), EXECUTABLE),
    ]
    return write_package(release, f"restante-{platform}", manifest, entries)


def build_client(release: Release) -> Path:
    """Compiles the TypeScript client, and writes its package, which depends on those of all platforms."""
    directory = compile_client(release)
    manifest = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    for key in ("scripts", "devDependencies"):
        del manifest[key]
    manifest["version"] = release.version
    manifest.update(repository(release, "clients/typescript"))
    manifest["optionalDependencies"] = {f"@restante/{platform}": release.version for platform in PLATFORMS}
    entries = [Entry("package/README.md", readme(release, CLIENT / "README.md"))]
    for folder in ("bin", "dist"):
        for path in sorted((directory / folder).rglob("*")):
            if path.is_file():
                mode = EXECUTABLE if folder == "bin" else READABLE
                entries.append(Entry(f"package/{path.relative_to(directory).as_posix()}", path, mode))
    return write_package(release, "restante", manifest, entries)


def compile_client(release: Release) -> Path:
    """Compiles the client in a copy, so that the source has no new files. Returns the directory of the copy."""
    release.require("npm", "see https://nodejs.org/")
    directory = release.work / "npm"
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        # What was installed is used again.
        if path.is_dir() and path.name != "node_modules":
            shutil.rmtree(path)
    for name in ("package.json", "tsconfig.json", ".npmrc"):
        shutil.copy2(CLIENT / name, directory / name)
    for name in ("bin", "src"):
        release.copy_tracked_files(CLIENT / name, directory / name)
    release.run(["npm", "install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory)
    release.run(["npm", "run", "build"], cwd=directory)
    return directory


def write_package(release: Release, name: str, manifest: dict, entries: list[Entry]) -> Path:
    """Writes a package as `npm pack` does."""
    entries += [Entry("package/package.json", (json.dumps(manifest, indent=2) + "\n").encode())]
    entries += [Entry(f"package/{license}", ROOT / license) for license in LICENSES]
    path = release.out / "npm" / f"{name}-{release.version}.tgz"
    write_tar_gz(path, entries, release.source_date_epoch)
    return path


def repository(release: Release, directory: str) -> dict:
    """Returns the field of a manifest that names the source."""
    if release.repository is None:
        return {}
    return {"repository": {"type": "git", "url": f"git+{release.repository}.git", "directory": directory}}
