"""Reads the stages of packaging/Dockerfile that begin with `FROM scratch`: which files an image has, and its configuration.

Only the instructions that the file uses are known; any other one is an error.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from .release import ReleaseError

NANOSECONDS = {"s": 10**9, "m": 60 * 10**9}
HEALTH_TIMES = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod"}


@dataclass(frozen=True)
class Copy:
    """An instruction COPY. `stage` is the stage that has the source, or None for a file of the source tree."""

    stage: str | None
    source: str
    destination: str
    uid: int
    gid: int


@dataclass
class Stage:
    """A stage without a base image. `config` is that of the image, as Docker writes it."""

    name: str
    copies: list[Copy] = field(default_factory=list)
    config: dict = field(default_factory=dict)


def read_stages(path: Path) -> dict[str, Stage]:
    """Returns the stages without a base image by name. The last stage of the file is called `""` if it has no name."""
    stages: dict[str, Stage] = {}
    stage = None
    for instruction, arguments in instructions(path.read_text(encoding="utf-8")):
        if instruction == "FROM":
            words = arguments.split()
            name = words[2] if len(words) == 3 and words[1] == "AS" else ""
            stage = Stage(name) if words[0] == "scratch" else None
            if stage:
                stages[name] = stage
        elif stage:
            apply(stage, instruction, arguments)
    return stages


def instructions(text: str) -> list[tuple[str, str]]:
    """Splits a Dockerfile into instructions and their arguments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in joined.splitlines()]


def apply(stage: Stage, instruction: str, arguments: str) -> None:
    """Adds an instruction to a stage."""
    config = stage.config
    if instruction == "COPY":
        stage.copies.append(parse_copy(arguments))
    elif instruction == "LABEL":
        config.setdefault("Labels", {}).update(pairs(arguments))
    elif instruction == "ENV":
        config.setdefault("Env", []).extend(f"{name}={value}" for name, value in pairs(arguments).items())
    elif instruction == "VOLUME":
        config.setdefault("Volumes", {}).update((path, {}) for path in arguments.split())
    elif instruction == "EXPOSE":
        ports = (port if "/" in port else f"{port}/tcp" for port in arguments.split())
        config.setdefault("ExposedPorts", {}).update((port, {}) for port in ports)
    elif instruction == "USER":
        config["User"] = arguments
    elif instruction == "ENTRYPOINT":
        config["Entrypoint"] = json.loads(arguments)
    elif instruction == "HEALTHCHECK":
        config["Healthcheck"] = parse_health_check(arguments)
    else:
        raise ReleaseError(f"packaging/Dockerfile: the instruction {instruction} is not supported in a stage FROM scratch")


def parse_copy(arguments: str) -> Copy:
    *flags, source, destination = arguments.split()
    options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    uid, _, gid = options.pop("chown", "0:0").partition(":")
    stage = options.pop("from", None)
    if options:
        raise ReleaseError(f"packaging/Dockerfile: the option --{next(iter(options))} of COPY is not supported")
    return Copy(stage, source, destination, int(uid), int(gid))


def parse_health_check(arguments: str) -> dict:
    options, _, command = arguments.partition("CMD ")
    check: dict = {"Test": ["CMD", *json.loads(command)]}
    for option in options.split():
        name, _, duration = option.removeprefix("--").partition("=")
        if name not in HEALTH_TIMES:
            raise ReleaseError(f"packaging/Dockerfile: the option --{name} of HEALTHCHECK is not supported")
        check[HEALTH_TIMES[name]] = int(duration[:-1]) * NANOSECONDS[duration[-1]]
    return check


def pairs(arguments: str) -> dict[str, str]:
    """Returns the values of `NAME=VALUE` or `NAME="VALUE"`."""
    return dict(word.split("=", 1) for word in shlex.split(arguments))
