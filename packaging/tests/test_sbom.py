"""The list of components: it names what the program is built from."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT, artefact


@pytest.fixture(scope="module")
def document(target, dist, version) -> dict:
    return json.loads(artefact(dist, f"restante-{version}-{target}.cdx.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def locked() -> dict[tuple[str, str], str]:
    """The packages in Cargo.lock by name and version, with their checksums. Those of the workspace have none."""
    packages = (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]")[1:]
    fields = [dict(re.findall(r'^(\w+) = "([^"]*)"$', package, re.MULTILINE)) for package in packages]
    return {(package["name"], package["version"]): package.get("checksum") for package in fields}


def names(document: dict) -> set[str]:
    return {component["name"] for component in document["components"]}


def test_the_document_describes_the_program(document, target, version):
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    program = document["metadata"]["component"]
    assert (program["name"], program["version"], program["type"]) == ("restante", version, "application")
    assert {"name": "cargo:target", "value": str(target)} in document["metadata"]["properties"]


def test_components_are_those_of_cargo_lock(document, locked):
    for component in document["components"]:
        checksum = locked[component["name"], component["version"]]
        assert [entry["content"] for entry in component.get("hashes", [])] == ([checksum] if checksum else [])
        assert component["licenses"], component["name"]


def test_every_dependency_of_the_program_is_listed(document):
    manifest = (ROOT / "crates/restante/Cargo.toml").read_text(encoding="utf-8")
    section = re.search(r"^\[dependencies\]\n(.*?)^\[", manifest, re.MULTILINE | re.DOTALL).group(1)
    wanted = set(re.findall(r"^([\w-]+)(?:\.workspace)? =", section, re.MULTILINE))
    assert {"rustls", "tokio", "restante-mail"} <= wanted
    assert wanted <= names(document)


def test_the_dependencies_reach_every_component(document):
    graph = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    reached, open_references = set(), [document["metadata"]["component"]["bom-ref"]]
    while open_references:
        reference = open_references.pop()
        if reference not in reached:
            reached.add(reference)
            open_references += graph[reference]
    assert reached - {document["metadata"]["component"]["bom-ref"]} == {item["bom-ref"] for item in document["components"]}


def test_dependencies_of_tests_and_of_other_systems_are_not_listed(document):
    assert {"ring", "libsqlite3-sys", "luajit-src"} <= names(document)
    assert not {"lettre", "proptest", "windows-sys"} & names(document)
