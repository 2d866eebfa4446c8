"""What ../run.py passes to the scripts: the server, the user, and the sources of the user's messages."""

import os
import pathlib
import smtplib

HOST = os.environ["IMAP_HOST"]
PORT = int(os.environ["IMAP_PORT"])
SMTP_PORT = int(os.environ["SMTP_PORT"])
USER = os.environ["IMAP_USER"]
PASSWORD = os.environ["IMAP_PASSWORD"]
TOKEN = os.environ["IMAP_TOKEN"]
SOURCES = [path.read_bytes() for path in sorted(pathlib.Path(os.environ["IMAP_SOURCES"]).iterdir())]


def send(subject):
    """Sends a message to the user."""
    with smtplib.SMTP(HOST, SMTP_PORT, timeout=20) as smtp:
        smtp.sendmail("ann@x.org", [f"{USER}@example.org"], f"From: ann@x.org\r\nSubject: {subject}\r\n\r\nHi\r\n")
