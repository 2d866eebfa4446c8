"""The container images for all Linux targets, as an OCI image layout in a tar archive.

The images are those of packaging/Dockerfile, which is read for this; Docker is not needed. One archive has all of them, so that
the program is in it once per target. `docker load`, `skopeo copy` and `crane push` read it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from .archive import EXECUTABLE, Entry, compress, tar
from .dockerfile import Copy, Stage, read_stages
from .release import ROOT, Release, ReleaseError, Target

DOCKERFILE = ROOT / "packaging" / "Dockerfile"

# The names of the images, and the stages of the Dockerfile that describe them. An Inbucket is replaced by the image as it is.
IMAGES = {"restante": "", "restante-inbucket": "", "restante-mailpit": "mailpit"}

# The stage that compiles the program has these files, besides the program itself and an empty directory.
BUILD_LINKS = {"/links/": {"mailpit": "restante"}}

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def build(release: Release) -> list[Path]:
    targets = [target for target in release.targets if target.is_linux]
    if not targets:
        return []
    layout = Layout(release)
    stages = read_stages(DOCKERFILE)
    # In the format of `docker save`, which Docker reads if it does not use containerd for images. It has no indexes.
    docker_manifest = []
    references = []
    for stage_name in dict.fromkeys(IMAGES.values()):
        names = [name for name, stage in IMAGES.items() if stage == stage_name]
        images = [layout.add_image(stages[stage_name], target) for target in targets]
        index = layout.add_index([image.descriptor for image in images])
        for name in names:
            references += [reference(index, f"{name}:{tag}") for tag in (release.version, "latest")]
        for image in images:
            docker_manifest.append(image.docker_entry(names, release.version))
    path = release.out / f"restante-{release.version}.oci.tar"
    path.write_bytes(layout.archive(references, docker_manifest))
    return [path]


def reference(index: dict, name: str) -> dict:
    """Returns the descriptor of an image with a name. Docker and containerd need the full form."""
    annotations = {"io.containerd.image.name": f"docker.io/library/{name}", "org.opencontainers.image.ref.name": name}
    return {**index, "annotations": annotations}


@dataclass(frozen=True)
class Image:
    """An image for one target."""

    descriptor: dict
    config: dict
    layers: list[dict]

    def docker_entry(self, names: list[str], version: str) -> dict:
        """Returns the entry of the image in `manifest.json`. A name can have one architecture only: others have it in the tag."""
        architecture = self.descriptor["platform"]["architecture"]
        tags = [version, "latest"] if architecture == "amd64" else [f"{version}-{architecture}"]
        return {
            "Config": blob_path(self.config),
            "RepoTags": [f"{name}:{tag}" for name in names for tag in tags],
            "Layers": [blob_path(layer) for layer in self.layers],
        }


class Layout:
    """The blobs of an OCI image layout."""

    def __init__(self, release: Release):
        self.release = release
        self.time = release.source_date_epoch
        self.created = datetime.fromtimestamp(self.time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.revision = release.run(["git", "rev-parse", "HEAD"], capture=True).strip()
        self.blobs: dict[str, bytes] = {}
        # Layers by the digest of their uncompressed content: compressing the program takes long.
        self.layers: dict[str, dict] = {}

    def add_image(self, stage: Stage, target: Target) -> Image:
        # The program is a layer of its own, which all images share.
        program = [copy for copy in stage.copies if (copy.stage, copy.source) == ("build", "/restante")]
        others = [copy for copy in stage.copies if copy not in program]
        diff_ids, layers = [], []
        for copies in (program, others):
            diff_id, layer = self.add_layer([entry for copy in copies for entry in self.entries(copy, target)])
            diff_ids.append(diff_id)
            layers.append(layer)
        config = json.loads(json.dumps(stage.config))
        config["WorkingDir"] = "/"
        config["Labels"]["org.opencontainers.image.created"] = self.created
        config["Labels"]["org.opencontainers.image.revision"] = self.revision
        config["Labels"]["org.opencontainers.image.version"] = self.release.version
        architecture = ARCHITECTURES[target.arch]
        config_blob = {
            "architecture": architecture,
            "config": config,
            "created": self.created,
            "history": [{"created": self.created, "created_by": "packaging/release"} for _ in layers],
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        }
        config_descriptor = self.add_json(CONFIG, config_blob)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config_descriptor,
            "layers": layers,
            "annotations": config["Labels"],
        }
        descriptor = self.add_json(MANIFEST, manifest)
        descriptor["platform"] = {"architecture": architecture, "os": "linux"}
        return Image(descriptor, config_descriptor, layers)

    def entries(self, copy: Copy, target: Target) -> list[Entry]:
        """Returns the files that an instruction COPY gives."""
        name = copy.destination.strip("/")
        owner = {"uid": copy.uid, "gid": copy.gid}
        if copy.stage is None:
            return [Entry(name, ROOT / copy.source, **owner)]
        if copy.stage == "build" and copy.source == "/restante":
            return [Entry(name, self.release.binary(target), EXECUTABLE, **owner)]
        if copy.stage == "build" and copy.source == "/empty":
            return [Entry(f"{name}/", mode=EXECUTABLE, **owner)]
        if copy.stage == "build" and copy.source in BUILD_LINKS:
            return [Entry(f"{name}/{link}".lstrip("/"), link=to, **owner) for link, to in BUILD_LINKS[copy.source].items()]
        raise ReleaseError(f"packaging/Dockerfile: what {copy.source} of the stage {copy.stage} contains is not known")

    def add_layer(self, entries: list[Entry]) -> tuple[str, dict]:
        """Adds a layer. Returns the digest of its uncompressed content, and its descriptor."""
        content = tar(entries, self.time)
        diff_id = digest(content)
        if diff_id not in self.layers:
            self.layers[diff_id] = self.add_blob(LAYER, compress(content))
        return diff_id, self.layers[diff_id]

    def add_index(self, manifests: list[dict]) -> dict:
        return self.add_json(INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})

    def add_json(self, media_type: str, content: dict) -> dict:
        return self.add_blob(media_type, to_json(content))

    def add_blob(self, media_type: str, content: bytes) -> dict:
        """Adds a blob. Returns its descriptor."""
        descriptor = {"mediaType": media_type, "digest": digest(content), "size": len(content)}
        self.blobs[blob_path(descriptor)] = content
        return descriptor

    def archive(self, references: list[dict], docker_manifest: list[dict]) -> bytes:
        """Returns the layout as a tar archive. It is not compressed, because the layers are."""
        entries = [Entry(name, content) for name, content in self.blobs.items()]
        entries.append(Entry("oci-layout", to_json({"imageLayoutVersion": "1.0.0"})))
        entries.append(Entry("index.json", to_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": references})))
        entries.append(Entry("manifest.json", to_json(docker_manifest)))
        return tar(entries, self.time)


def to_json(content) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def blob_path(descriptor: dict) -> str:
    """Returns the name of a blob in the layout."""
    return "blobs/" + descriptor["digest"].replace(":", "/")
