"""The program restante, a mail server for development and tests."""

from __future__ import annotations

import os
import sysconfig
from importlib import metadata

#: The file name of the program.
NAME = "restante.exe" if os.name == "nt" else "restante"


def binary() -> str:
    """Returns the path of the program. Raises ``FileNotFoundError`` if it was deleted."""
    candidates = []
    try:
        # The list of installed files also knows the directory of an installation with `--user` or `--prefix`.
        files = metadata.files("restante-server") or []
        candidates += [str(file.locate()) for file in files if file.name == NAME]
    except metadata.PackageNotFoundError:
        pass
    # With `--target`, the list has the path from which the program was moved to this directory.
    package = os.path.dirname(os.path.abspath(__file__))
    candidates.append(os.path.join(os.path.dirname(package), "bin", NAME))
    candidates.append(os.path.join(sysconfig.get_path("scripts"), NAME))
    for path in candidates:
        if os.path.isfile(path):
            return os.path.abspath(path)
    raise FileNotFoundError("the program of the package restante-server is missing; looked for " + ", ".join(candidates))
