"""The container images: the format of the archive, the files and settings of the images, and that they run."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, artefact, emulator, missing, require
from steps import image as image_step
from steps.dockerfile import read_stages
from steps.release import LINUX_TARGETS, Release, ReleaseError

SECOND = 10**9
OWNER = (65532, 65532)

# What the images have to be, by name. The files are (type, mode, owner, link).
PROGRAM = {"restante": ("file", 0o755, (0, 0), "")}
RESTANTE = {
    "config": {
        "User": "65532:65532",
        "Entrypoint": ["/restante"],
        "Env": ["RESTANTE_CONFIG=/etc/restante.toml"],
        "ExposedPorts": {"2500/tcp": {}, "1100/tcp": {}, "1143/tcp": {}, "9000/tcp": {}},
        "Volumes": {"/config": {}, "/storage": {}},
        "WorkingDir": "/",
        "Healthcheck": {
            "Test": ["CMD", "/restante", "health"],
            "Interval": 10 * SECOND,
            "Timeout": 5 * SECOND,
            "StartPeriod": 10 * SECOND,
        },
    },
    "title": "Restante",
    "files": {
        **PROGRAM,
        "config": ("directory", 0o755, OWNER, ""),
        "storage": ("directory", 0o755, OWNER, ""),
        "etc": ("directory", 0o755, (0, 0), ""),
        "etc/restante.toml": ("file", 0o644, (0, 0), ""),
    },
    "run": {"smtp": 2500, "http": 9000, "messages": "/api/v1/mailbox/anna", "variables": [], "requests": []},
}
MAILPIT = {
    "config": {
        "User": "65532:65532",
        "Entrypoint": ["/mailpit"],
        "ExposedPorts": {"1025/tcp": {}, "1110/tcp": {}, "8025/tcp": {}},
        "Volumes": {"/data": {}},
        "WorkingDir": "/",
        "Healthcheck": {
            "Test": ["CMD", "/mailpit", "readyz"],
            "Interval": 15 * SECOND,
            "Timeout": 5 * SECOND,
            "StartPeriod": 10 * SECOND,
        },
    },
    "title": "Restante as a replacement for Mailpit",
    "files": {
        **PROGRAM,
        "mailpit": ("link", 0o777, (0, 0), "restante"),
        "data": ("directory", 0o755, OWNER, ""),
    },
    "run": {
        "smtp": 1025,
        "http": 8025,
        "messages": "/api/v1/messages",
        "variables": ["MP_DATABASE=/data/mailpit.db"],
        # A change with an unknown zone is refused. The image has no /usr/share/zoneinfo: the zones are in the program.
        "requests": [("DELETE", "/api/v1/search?query=before:2020-01-01&tz=Pacific%2FAuckland")],
    },
}
EXPECTED = {"restante": RESTANTE, "restante-inbucket": RESTANTE, "restante-mailpit": MAILPIT}


class Archive:
    """The content of the archive."""

    def __init__(self, path: Path):
        self.path = path
        with tarfile.open(path) as files:
            self.members = files.getmembers()
            self.files = {member.name: files.extractfile(member).read() for member in self.members if member.isfile()}
        self.index = json.loads(self.files["index.json"])

    def blob(self, descriptor: dict, media_type: str) -> bytes:
        """Returns a blob after checking its descriptor."""
        assert descriptor["mediaType"] == media_type
        content = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert descriptor["size"] == len(content)
        assert descriptor["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
        return content

    def references(self) -> dict[str, dict]:
        return {item["annotations"]["org.opencontainers.image.ref.name"]: item for item in self.index["manifests"]}

    def manifests(self, reference: str) -> dict[str, dict]:
        """Returns the manifests of an image by architecture."""
        index = json.loads(self.blob(self.references()[reference], image_step.INDEX))
        assert (index["schemaVersion"], index["mediaType"]) == (2, image_step.INDEX)
        result = {}
        for descriptor in index["manifests"]:
            assert descriptor["platform"]["os"] == "linux"
            manifest = json.loads(self.blob(descriptor, image_step.MANIFEST))
            assert (manifest["schemaVersion"], manifest["mediaType"]) == (2, image_step.MANIFEST)
            result[descriptor["platform"]["architecture"]] = manifest
        return result

    def config(self, manifest: dict) -> dict:
        return json.loads(self.blob(manifest["config"], image_step.CONFIG))

    def layers(self, manifest: dict) -> list[bytes]:
        """Returns the layers as tar archives."""
        return [gzip.decompress(self.blob(layer, image_step.LAYER)) for layer in manifest["layers"]]


@pytest.fixture(scope="module")
def archive(dist, version) -> Archive:
    return Archive(artefact(dist, f"restante-{version}.oci.tar"))


@pytest.fixture(scope="module", params=EXPECTED)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def manifest(archive, name, version, target) -> dict:
    """The manifest of an image for one target."""
    architecture = image_step.ARCHITECTURES[target.arch]
    manifests = archive.manifests(f"{name}:{version}")
    if architecture not in manifests:
        missing(f"the image has no {architecture}")
    return manifests[architecture]


def test_the_archive_is_an_image_layout(archive, version):
    assert json.loads(archive.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert archive.index["schemaVersion"] == 2
    names = {f"{name}:{tag}" for name in EXPECTED for tag in (version, "latest")}
    assert set(archive.references()) == names
    full_names = {item["annotations"]["io.containerd.image.name"] for item in archive.index["manifests"]}
    assert full_names == {f"docker.io/library/{name}" for name in names}


def test_an_inbucket_is_replaced_by_the_image_as_it_is(archive, version):
    references = archive.references()
    digests = {references[f"{name}:{tag}"]["digest"] for name in ("restante", "restante-inbucket") for tag in (version, "latest")}
    assert len(digests) == 1


def test_the_archive_has_no_blob_that_is_not_used(archive, version):
    used = set()
    for reference, descriptor in archive.references().items():
        used.add(descriptor["digest"])
        index = json.loads(archive.blob(descriptor, image_step.INDEX))
        used.update(item["digest"] for item in index["manifests"])
        for manifest in archive.manifests(reference).values():
            used.update([manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])])
    assert {name for name in archive.files if name.startswith("blobs/")} == {"blobs/" + item.replace(":", "/") for item in used}


def test_the_archive_has_one_time_and_no_owner(archive):
    assert len({member.mtime for member in archive.members}) == 1
    assert {(member.uid, member.gid, member.uname, member.gname) for member in archive.members} == {(0, 0, "", "")}


def test_two_archives_are_equal(tmp_path):
    # Small programs: compressing the real ones takes a while.
    for target in LINUX_TARGETS:
        (tmp_path / "bin" / target).mkdir(parents=True)
        (tmp_path / "bin" / target / "restante").write_text(target)
    contents = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (path,) = image_step.build(Release(out=tmp_path / name, targets=list(LINUX_TARGETS), binaries=tmp_path / "bin"))
        contents.append(path.read_bytes())
        # A change of the time of a file changes nothing.
        os.utime(tmp_path / "bin" / LINUX_TARGETS[0] / "restante", (0, 0))
    assert contents[0] == contents[1]
    archive = Archive(path)
    for name in EXPECTED:
        manifests = archive.manifests(f"{name}:latest")
        assert set(manifests) == {"amd64", "arm64"}
        layers = [manifest["layers"][0]["digest"] for manifest in manifests.values()]
        assert len(set(layers)) == 2
    # All images of an architecture share the layer of the program.
    assert len({archive.manifests(f"{name}:latest")["arm64"]["layers"][0]["digest"] for name in EXPECTED}) == 1


def test_the_settings_are_those_of_the_image(archive, name, manifest, version, target):
    config = archive.config(manifest)
    assert (config["architecture"], config["os"]) == (image_step.ARCHITECTURES[target.arch], "linux")
    labels = config["config"].pop("Labels")
    assert config["config"] == EXPECTED[name]["config"]
    prefix = "org.opencontainers.image."
    assert {label: value for label, value in labels.items() if label not in (f"{prefix}created", f"{prefix}revision")} == {
        f"{prefix}title": EXPECTED[name]["title"],
        f"{prefix}description": "A mail server for development and tests",
        f"{prefix}licenses": "MIT OR Apache-2.0",
        f"{prefix}version": version,
    }
    assert labels[f"{prefix}created"] == config["created"]
    assert len(labels[f"{prefix}revision"]) == 40


def test_the_layers_have_the_files_of_the_image(archive, name, manifest):
    layers = archive.layers(manifest)
    config = archive.config(manifest)
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]
    assert len(config["history"]) == len(layers)
    kinds = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link"}
    files = {}
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as members:
            for member in members:
                owner = (member.uid, member.gid)
                assert member.name not in files
                files[member.name] = (kinds[member.type], member.mode, owner, member.linkname)
    assert files == EXPECTED[name]["files"]


def test_docker_without_containerd_finds_the_images(archive, version):
    tags = {}
    for entry in json.loads(archive.files["manifest.json"]):
        config = json.loads(archive.files[entry["Config"]])
        assert all(layer in archive.files for layer in entry["Layers"])
        assert len(entry["Layers"]) == len(config["rootfs"]["diff_ids"])
        for tag in entry["RepoTags"]:
            assert tag not in tags
            tags[tag] = config["architecture"]
    for name in EXPECTED:
        for architecture in archive.manifests(f"{name}:{version}"):
            tag = version if architecture == "amd64" else f"{version}-{architecture}"
            assert tags[f"{name}:{tag}"] == architecture


def test_skopeo_copies_the_image(archive, name, version, target, manifest, tmp_path):
    skopeo = require("skopeo")
    architecture = image_step.ARCHITECTURES[target.arch]
    options = ["--insecure-policy", "--override-os", "linux", "--override-arch", architecture, "--tmpdir", str(tmp_path)]
    sources = {f"oci-archive:{archive.path}:{name}:{version}", f"oci-archive:{archive.path}:{name}:latest"}
    if architecture == "amd64":
        sources.add(f"docker-archive:{archive.path}:{name}:{version}")
    for number, source in enumerate(sorted(sources)):
        copy = tmp_path / str(number)
        subprocess.run([skopeo, *options, "copy", "--quiet", source, f"dir:{copy}"], check=True)
        copied = json.loads((copy / "manifest.json").read_text())
        config = copied["config"]["digest"].removeprefix("sha256:")
        assert json.loads((copy / config).read_text()) == archive.config(manifest)


def test_skopeo_copies_all_architectures(archive, name, version, tmp_path):
    """The release workflow uses this command to push an image."""
    source = f"oci-archive:{archive.path}:{name}:{version}"
    command = [require("skopeo"), "--insecure-policy", "--tmpdir", str(tmp_path), "copy", "--quiet", "--all", source]
    subprocess.run([*command, f"dir:{tmp_path / 'copy'}"], check=True)
    index = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    architectures = {manifest["platform"]["architecture"] for manifest in index["manifests"]}
    assert architectures == set(archive.manifests(f"{name}:{version}"))


def test_the_image_receives_and_returns_a_message(archive, name, manifest, target, tmp_path):
    if name == "restante-inbucket":
        pytest.skip("the same image as restante")
    for program in ("unshare", "bwrap"):
        require(program)
    permitted = ["unshare", "--user", "--map-root-user", "--net", "bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"]
    if subprocess.run(permitted, stderr=subprocess.DEVNULL).returncode != 0:
        missing("this machine permits no user namespaces")
    config = archive.config(manifest)["config"]
    root = unpack(archive.layers(manifest), tmp_path / "root")
    # Where the container engine mounts file systems, and the emulator of this test.
    for directory in ("proc", "dev"):
        (root / directory).mkdir()
    (root / "emulator").touch()
    volumes = tmp_path / "volumes"
    for path in config["Volumes"]:
        (volumes / path.strip("/")).mkdir(parents=True)
    specification = {
        **EXPECTED[name]["run"],
        "root": str(root),
        "config": config,
        "volumes": str(volumes),
        "emulator": [shutil.which(program) for program in emulator(target)],
        "subject": "Your order",
    }
    file = tmp_path / "specification.json"
    file.write_text(json.dumps(specification))
    script = Path(__file__).with_name("container.py")
    subprocess.run(["unshare", "--user", "--map-root-user", "--net", sys.executable, script, file], check=True)


def unpack(layers: list[bytes], root: Path) -> Path:
    """Unpacks layers. All files belong to the current user."""
    root.mkdir()
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as files:
            for member in files:
                member.uid, member.gid = os.getuid(), os.getgid()
                files.extract(member, root)
    return root


def test_the_image_has_the_program_of_the_archive(archive, manifest, dist, version, target):
    name = f"restante-{version}-{target}"
    with tarfile.open(artefact(dist, f"{name}.tar.gz")) as files:
        program = files.extractfile(f"{name}/restante").read()
    with tarfile.open(fileobj=io.BytesIO(archive.layers(manifest)[0])) as files:
        assert files.extractfile("restante").read() == program


def test_the_dockerfile_makes_the_links_of_the_image():
    text = (ROOT / "packaging" / "Dockerfile").read_text()
    for directory, links in image_step.BUILD_LINKS.items():
        for link, to in links.items():
            assert f"ln -s {to} {directory}{link}\n" in text


@pytest.mark.parametrize(
    "line, message",
    [
        ("RUN true", "the instruction RUN is not supported"),
        ("WORKDIR /", "the instruction WORKDIR is not supported"),
        ("COPY --chmod=700 a /a", "the option --chmod of COPY is not supported"),
        ('HEALTHCHECK --retries=3 CMD ["/a"]', "the option --retries of HEALTHCHECK is not supported"),
    ],
)
def test_other_instructions_of_the_dockerfile_are_refused(tmp_path, line, message):
    file = tmp_path / "Dockerfile"
    file.write_text(f"FROM debian AS build\nRUN true\n\nFROM scratch\n{line}\n")
    with pytest.raises(ReleaseError, match=message):
        read_stages(file)


def test_compose_uses_the_image_as_it_is(archive, version):
    """The ports, volumes and user in compose.yaml and haproxy.cfg are those of the image."""
    config = RESTANTE["config"]
    compose = (ROOT / "packaging" / "compose.yaml").read_text()
    balancer = (ROOT / "packaging" / "haproxy.cfg").read_text()
    for port in (port.split("/")[0] for port in config["ExposedPorts"]):
        assert f":{port}:{port}" in compose
        assert f"node:{port} " in balancer or f"node:{port}\n" in balancer
    assert "./config:/config:ro" in compose and "tmpfs: [/storage]" in compose
    assert config["User"].split(":")[0] in compose
