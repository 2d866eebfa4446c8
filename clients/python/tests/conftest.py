"""Loads the fixtures from the source tree if the package is not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

pytest_plugins = ["restante.pytest_plugin"]
