"""Loads the fixtures from the source tree, unless pytest has loaded those of the installed package."""

import sys
from pathlib import Path

pytest_plugins = ["pytester"]

if "restante.pytest_plugin" not in sys.modules:
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    pytest_plugins.append("restante.pytest_plugin")
