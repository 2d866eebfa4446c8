"""The Helm chart, with the version of the program in it."""

from __future__ import annotations

import re
from pathlib import Path

from .archive import Entry, write_tar_gz
from .release import ROOT, Release, ReleaseError

# The source of the chart. The package has one directory, with the name of the chart.
SOURCE = ROOT / "packaging" / "helm" / "restante"


def build(release: Release) -> list[Path]:
    files = [path for path in release.tracked_files(SOURCE) if path.name != "Chart.yaml"]
    entries = [Entry(f"restante/{path.relative_to(SOURCE).as_posix()}", path) for path in files]
    entries.append(Entry("restante/Chart.yaml", chart_with_version(release.version).encode()))
    package = release.out / f"restante-chart-{release.version}.tgz"
    write_tar_gz(package, entries, release.source_date_epoch)
    return [package]


def chart_with_version(version: str) -> str:
    """Returns Chart.yaml with the version of the program as that of the chart and of the application."""
    text = (SOURCE / "Chart.yaml").read_text(encoding="utf-8")
    text, count = re.subn(r"(?m)^(version|appVersion): .*$", rf'\1: "{version}"', text)
    if count != 2:
        raise ReleaseError(f"Chart.yaml has {count} lines with a version instead of two")
    return text
