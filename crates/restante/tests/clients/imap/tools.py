"""The programs that the clients are made of."""

import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent
# Where `install` puts its downloads.
DOWNLOADS = HERE.parents[4] / "target/tools/imap-clients"
# The longest time that a program takes, in seconds.
TIMEOUT = 120


class NotInstalled(Exception):
    """A client is missing. The text says what to do."""


def require(program):
    """Returns the path of a program."""
    path = shutil.which(program)
    if path is None:
        raise NotInstalled(f"{program} is not installed")
    return path


def require_file(path, language):
    """Returns the path of a file that `install` downloads with the packages of a language."""
    if not path.exists():
        raise NotInstalled(f"{path} is missing: run {HERE / 'install'} {language}")
    return path
