"""Lists of the components in a program (SBOM), in the format CycloneDX 1.5."""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from .release import ROOT, Release, Target

# The kinds of dependencies that are part of a program or of its build. The other kind is that of tests.
KINDS = (None, "build")


def build(release: Release) -> list[Path]:
    return [build_list(release, target) for target in release.targets]


def build_list(release: Release, target: Target) -> Path:
    metadata = json.loads(
        release.run(["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"], capture=True)
    )
    path = release.out / f"restante-{release.version}-{target}.cdx.json"
    document = describe(release, target, metadata, linked_packages(release, target))
    path.write_bytes(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
    return path


def linked_packages(release: Release, target: Target) -> set[tuple[str, str]]:
    """Returns name and version of every package that the program is built from. `cargo metadata` knows only those of the
    whole workspace."""
    arguments = ["--locked", "--package=restante", f"--target={target}", "--edges=normal,build", "--prefix=none", "--format={p}"]
    tree = release.run(["cargo", "tree", *arguments], capture=True)
    lines = [line.split() for line in tree.splitlines() if line]
    return {(words[0], words[1].removeprefix("v")) for words in lines}


def describe(release: Release, target: Target, metadata: dict, linked: set[tuple[str, str]]) -> dict:
    """Returns the document. It contains no random number and no path or time of this machine."""
    packages = {package["id"]: package for package in metadata["packages"] if (package["name"], package["version"]) in linked}
    checksums = crate_checksums()
    components, program = [], None
    for package in sorted(packages.values(), key=package_url):
        component = describe_package(package, checksums)
        if package["name"] == "restante":
            program = dict(component, type="application")
        else:
            components.append(component)
    moment = datetime.fromtimestamp(release.source_date_epoch, timezone.utc)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
            "properties": [
                {"name": "cargo:target", "value": target.triple},
                {"name": "cargo:rustc", "value": release.run(["rustc", "--version"], capture=True).strip()},
            ],
        },
        "components": components,
        "dependencies": dependencies(metadata, packages),
    }
    # A serial number that is the same for the same content.
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True)).urn
    return document


def dependencies(metadata: dict, packages: dict[str, dict]) -> list[dict]:
    """Returns the direct dependencies of each package."""
    result = []
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in packages:
            names = {
                package_url(packages[dependency["pkg"]])
                for dependency in node["deps"]
                if dependency["pkg"] in packages and any(kind["kind"] in KINDS for kind in dependency["dep_kinds"])
            }
            result.append({"ref": package_url(packages[node["id"]]), "dependsOn": sorted(names)})
    return sorted(result, key=lambda entry: entry["ref"])


def describe_package(package: dict, checksums: dict[tuple[str, str], str]) -> dict:
    url = package_url(package)
    component = {"type": "library", "bom-ref": url, "name": package["name"], "version": package["version"]}
    if package["description"]:
        component["description"] = " ".join(package["description"].split())
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        # Old packages have a slash between licenses.
        component["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
    component["purl"] = url
    if package["repository"]:
        component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return component


def package_url(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{quote(package['version'])}"


def crate_checksums() -> dict[tuple[str, str], str]:
    """Returns the checksums in Cargo.lock, by name and version."""
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    pattern = r'^name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"$'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, lock, re.MULTILINE)}
