"""Runs the program: ``python -m restante_server``."""

import os
import subprocess
import sys

from . import binary


def main() -> int:
    command = [binary(), *sys.argv[1:]]
    if os.name != "nt":
        os.execv(command[0], command)
    # Windows cannot replace a process. Ctrl-C is sent to both; this one has to wait for the other.
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    sys.exit(main())
