"""Clients that are programs: each copies the mailbox to the disk, and copies nothing when it is run again.

The functions get the server, the user and an empty directory from `run.py`.
"""

import os
import pty
import re
import shutil
import subprocess

from tools import TIMEOUT, require


def call(command, environment=None, code=0):
    """Runs a program, and returns its output. Fails if its exit code is another one."""
    command = [str(part) for part in command]
    # No settings of this user are read.
    environment = os.environ | {"LC_ALL": "C.UTF-8"} | (environment or {})
    result = subprocess.run(
        command, env=environment, timeout=TIMEOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = result.stdout.decode(errors="replace")
    assert result.returncode == code, (command, result.returncode, output)
    return output


def maildir(folder):
    """Returns the messages of a Maildir."""
    return [file for name in ["cur", "new"] for file in (folder / name).iterdir()]


def assert_copied(files, sources, ignored=rb"(?!)"):
    """Asserts that these files are the messages, except for line ends and what the pattern matches: fields that the client adds."""
    found = sorted(re.sub(ignored, b"", file.read_bytes().replace(b"\r\n", b"\n")) for file in files)
    expected = sorted(source.replace(b"\r\n", b"\n") for source in sources)
    for one, other in zip(found, expected):
        assert one == other, (one[:2000], other[:2000])
    assert len(found) == len(expected), len(found)


def message_writer(server, folder):
    """Creates a program that writes a message to a new file in the folder. Returns its path."""
    folder.mkdir()
    writer = server.directory / "write"
    writer.write_text(f'#!/bin/sh\ncat > "$(mktemp {folder}/XXXXXX)"\n')
    writer.chmod(0o700)
    return writer


def curl(server):
    def get(path, *options):
        url = f"imap://{server.host}:{server.port}/{path}"
        command = [require("curl"), "--disable", "--silent", "--show-error", "--max-time", "20"]
        login = ["--user", f"{server.user}:{server.password}"]
        return subprocess.run([*command, *login, *options, url], stdout=subprocess.PIPE, check=True).stdout

    assert b"INBOX" in get("")
    uids = get("INBOX", "--request", "UID SEARCH ALL").split()[2:]
    assert len(uids) == len(server.sources), uids
    for number, (uid, source) in enumerate(zip(uids, server.sources), 1):
        assert get(f"INBOX;UID={uid.decode()}") == source
        assert get(f"INBOX;MAILINDEX={number}") == source
    assert get("INBOX;MAILINDEX=3;SECTION=1.1") == b"Caf=C3=A9"
    assert get("INBOX;MAILINDEX=3;SECTION=HEADER.FIELDS%20(SUBJECT)") == b"Subject: Parts\r\n\r\n"
    assert get("INBOX?SUBJECT%20Large").split() == [b"*", b"SEARCH", b"4"]
    get("INBOX", "--request", r"STORE 1 +FLAGS \Deleted")
    get("INBOX", "--request", "EXPUNGE")
    get("INBOX", "--upload-file", str(server.directory / "sources/1.eml"))
    for mechanism in ["PLAIN", "LOGIN"]:
        assert get("INBOX;MAILINDEX=5", "--login-options", f"AUTH={mechanism}") == server.sources[0]
    token = ["--oauth2-bearer", f"token-{server.user}", "--login-options"]
    for mechanism in ["XOAUTH2", "OAUTHBEARER"]:
        assert get("INBOX;MAILINDEX=1", *token, f"AUTH={mechanism}") == server.sources[1]


def mbsync(server):
    folder = server.directory / "mail"
    folder.mkdir()
    file = server.directory / "mbsyncrc"
    file.write_text(
        f"""\
IMAPAccount test
Host {server.host}
Port {server.port}
User {server.user}
Pass {server.password}
SSLType None
AuthMechs PLAIN LOGIN

IMAPStore server
Account test

MaildirStore local
Path {folder}/
Inbox {folder}/INBOX
SubFolders Verbatim

Channel test
Far :server:
Near :local:
Patterns INBOX Sent
Create Both
Expunge Both
SyncState *
"""
    )

    def sync():
        """Returns the numbers of messages that were fetched and sent."""
        output = call([require("mbsync"), "--config", file, "--all", "--debug-net"])
        return output.count("BODY.PEEK[]"), len(re.findall(r">>> \d+ APPEND ", output))

    inbox = folder / "INBOX"
    assert sync() == (5, 0)
    assert_copied(maildir(inbox), server.sources, rb"(?m)^X-TUID: .*\n")
    assert sync() == (0, 0)
    # A new message, a changed one and a deleted one.
    first, second, *_ = sorted(maildir(inbox))
    first.rename(inbox / "cur" / f"{first.name}FS")
    second.rename(inbox / "cur" / f"{second.name}T")
    (inbox / "new/1.new.local").write_bytes(b"Subject: Local\n\nHi\n")
    assert sync() == (0, 1)
    assert sync() == (0, 0)
    shutil.rmtree(folder)
    folder.mkdir()
    assert sync() == (5, 0)
    assert len(list(inbox.glob("cur/*,FS"))) == 1


def offlineimap(server):
    folder = server.directory / "mail"
    file = server.directory / "offlineimaprc"
    file.write_text(
        f"""\
[general]
accounts = test
metadata = {server.directory}/metadata

[Account test]
localrepository = local
remoterepository = server

[Repository local]
type = Maildir
localfolders = {folder}

[Repository server]
type = IMAP
remotehost = {server.host}
remoteport = {server.port}
remoteuser = {server.user}
remotepass = {server.password}
ssl = no
starttls = no
folderfilter = lambda name: name == "INBOX"
"""
    )

    def sync():
        return call([require("offlineimap"), "-c", file, "-o", "-u", "basic"])

    assert sync().count("Copy message ") == 5
    assert_copied(maildir(folder / "INBOX"), server.sources)
    assert "Copy message " not in sync()
    copy = next((folder / "INBOX/new").iterdir())
    copy.rename(folder / "INBOX/cur" / copy.name.replace(":2,", ":2,FS"))
    output = sync()
    assert "Adding flag" in output, output
    output = sync()
    assert "Copy message " not in output and "flag" not in output, output


def fetchmail(server):
    folder = server.directory / "mail"
    file = server.directory / "fetchmailrc"
    writer = message_writer(server, folder)
    file.write_text(
        f"poll {server.host} protocol imap port {server.port} user {server.user} password {server.password}\n"
        f"sslproto '' no rewrite pass8bits mda {writer}\n"
    )
    file.chmod(0o600)

    def fetch(code):
        home = {"HOME": str(server.directory), "FETCHMAILHOME": str(server.directory)}
        arguments = ["--fetchmailrc", file, "--nosyslog", "--invisible"]
        return call([require("fetchmail"), *arguments], home, code)

    fetch(0)
    assert_copied(folder.iterdir(), server.sources)
    # The messages have been deleted. The exit code says that there are none.
    assert "No mail" in fetch(1)


def getmail(server):
    folder = server.directory / "mail"
    writer = message_writer(server, folder)
    (server.directory / "getmailrc").write_text(
        f"""\
[retriever]
type = SimpleIMAPRetriever
server = {server.host}
port = {server.port}
username = {server.user}
password = {server.password}

[destination]
type = MDA_external
path = {writer}
allow_root_commands = true

[options]
read_all = false
delivered_to = false
received = false
"""
    )

    def fetch():
        return call([require("getmail"), "--getmaildir", server.directory])

    assert "5 messages" in fetch()
    assert_copied(folder.iterdir(), server.sources, rb"(?m)^X-getmail-retrieved-from-mailbox: INBOX\n")
    assert "0 messages" in fetch()


def neomutt(server):
    """Runs NeoMutt in a terminal, and copies all messages to a file."""
    mailbox, log = server.directory / "copy", server.directory / "log0"
    for cache in ["headers", "messages"]:
        (server.directory / cache).mkdir()
    file = server.directory / "neomuttrc"
    file.write_text(
        f"""\
set imap_user = {server.user} imap_pass = {server.password} ssl_starttls = no ssl_force_tls = no
set folder = imap://{server.host}:{server.port}/ spoolfile = +INBOX
set header_cache = {server.directory}/headers message_cachedir = {server.directory}/messages
set mbox_type = Maildir confirmcreate = no confirmappend = no delete = yes quit = yes sleep_time = 0 wait_key = no
set imap_passive = no abort_nosubject = no
push '<tag-pattern>~A<enter><tag-prefix><copy-message>{mailbox}<enter><untag-pattern>~A<enter><quit>'
"""
    )

    def copy():
        """Returns the number of bodies that were fetched."""
        command = [require("neomutt"), "-n", "-F", str(file), "-d", "2", "-l", str(server.directory / "log")]
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="xterm", HOME=str(server.directory))
            os.execv(command[0], command)
        screen = b""
        try:
            while output := os.read(terminal, 4096):
                screen += output
        except OSError:
            # The terminal is closed when the program has ended.
            pass
        assert os.waitpid(child, 0)[1] == 0, screen
        assert_copied(maildir(mailbox), server.sources, rb"(?m)^(Content-Length|Lines): .*\n")
        shutil.rmtree(mailbox)
        return log.read_text(errors="replace").count("BODY.PEEK[]")

    first = copy()
    assert first >= 5, first
    log.unlink()
    # The cache has all messages but the one whose body is empty.
    assert copy() <= 1
