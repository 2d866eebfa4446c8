"""Uses the server with Python's imaplib."""

import imaplib
import re
import time

from environment import HOST, PASSWORD, PORT, SOURCES, TOKEN, USER, send

FOLDER = "Archive/Entw&APw-rfe"


def connect():
    return imaplib.IMAP4(HOST, PORT, timeout=20)


def ok(response):
    """Returns the data of a successful response."""
    status, data = response
    assert status == "OK", response
    return data


def names(response):
    """Returns the names in the replies to LIST or LSUB."""
    return [line.decode().rpartition(' "/" ')[2].strip('"') for line in ok(response) if line]


def search(*criteria, charset=None):
    options = ["CHARSET", charset] if charset else []
    return [int(number) for number in ok(imap.uid("SEARCH", *options, *criteria))[0].split()]


def fetch(uid, item):
    """Returns the literal of a reply to FETCH, or its text if it has none."""
    data = [part for part in ok(imap.uid("FETCH", str(uid), item)) if part != b")"]
    assert len(data) == 1, data
    return data[0][1] if isinstance(data[0], tuple) else data[0]


def flags(uid):
    return {flag.decode() for flag in imaplib.ParseFlags(fetch(uid, "(FLAGS)"))} - {r"\Recent"}


imap = connect()
assert "IMAP4REV1" in imap.capabilities, imap.capabilities
ok(imap.login(USER, PASSWORD))
assert ok(imap.namespace())[0].startswith(b'(("" "/"))'), imap.namespace()
assert "INBOX" in names(imap.list())
assert ok(imap.select("inbox")) == [b"5"]
assert ok(imap.status("INBOX", "(MESSAGES UNSEEN)")) in ([b"INBOX (MESSAGES 5 UNSEEN 5)"], [b'"INBOX" (MESSAGES 5 UNSEEN 5)'])

# Bodies and parts of them.
uids = search("ALL")
assert len(uids) == 5 and uids == sorted(uids), uids
for uid, source in zip(uids, SOURCES):
    assert fetch(uid, "(BODY.PEEK[])") == source
    assert f"RFC822.SIZE {len(source)}".encode() in fetch(uid, "(RFC822.SIZE)")
    header, _, text = source.partition(b"\r\n\r\n")
    assert fetch(uid, "(BODY.PEEK[HEADER])") == header + b"\r\n\r\n"
    assert fetch(uid, "(BODY.PEEK[TEXT])").endswith(text) if text else True
    assert fetch(uid, "(BODY.PEEK[]<10.20>)") == source[10:30]
assert search("UNSEEN") == uids
assert fetch(uids[2], "(BODY[1.1])") == b"Caf=C3=A9"
assert fetch(uids[2], "(BODY[3.HEADER.FIELDS (SUBJECT)])") == b"Subject: Nested\r\n\r\n"
assert fetch(uids[2], "(BODY[3.2])") == b"<p>The nested page.</p>"
assert fetch(uids[2], "(BODY[2.MIME])").startswith(b"Content-Type: application/octet-stream;")
assert search("UNSEEN") == uids[:2] + uids[3:]
envelope = fetch(uids[0], "(ENVELOPE)")
recipients = b'(("Ben" NIL "ben" "y.org")(NIL NIL "carl" "y.org"))'
for text in [b'"Invoice 1001"', b'(("Ann Lee" NIL "ann" "x.org"))', recipients, b'"<1@x.org>"']:
    assert text in envelope, envelope
structure = fetch(uids[2], "(BODYSTRUCTURE)").lower()
attachment = [b'"application" "octet-stream" ("name" "data.bin")', b'("attachment" ("filename" "data.bin"))']
for text in [b'"alternative"', *attachment, b'"message" "rfc822"']:
    assert text in structure, structure

# Searches.
day = lambda seconds: time.strftime("%d-%b-%Y", time.gmtime(time.time() + seconds))
for criteria, numbers in [
    (["FROM", '"Ann"'], [1, 3, 4, 5]),
    (["SUBJECT", "invoice"], [1]),
    (["HEADER", "X-Test", '"a value"'], [3]),
    (["HEADER", "X-Test", '""'], [3]),
    (["TEXT", '"first mail"'], [1]),
    (["BODY", '"nested text"'], [3]),
    (["SINCE", day(-86_400)], [1, 2, 3, 4, 5]),
    (["BEFORE", day(-86_400)], []),
    (["SENTSINCE", "2-Mar-2024", "NOT", "SENTSINCE", "4-Mar-2024"], [2, 3]),
    (["LARGER", "100000"], [4]),
    (["OR", "CC", "dora", "SUBJECT", "Empty"], [1, 5]),
    (["1,3:4"], [1, 3, 4]),
]:
    assert search(*criteria) == [uids[number - 1] for number in numbers], criteria
for text in ["Käse", "Stück"]:
    imap.literal = text.encode()
    assert search("BODY", charset="UTF-8") == [uids[1]], text
imap.literal = "Grüße".encode()
assert search("SUBJECT", charset="UTF-8") == [uids[1]]
assert imap.uid("SEARCH", "CHARSET", "X-UNKNOWN", "ALL")[0] == "NO"

# Flags and keywords.
ok(imap.uid("STORE", str(uids[0]), "+FLAGS", r"(\Flagged $Forwarded work)"))
assert flags(uids[0]) == {r"\Flagged", "$Forwarded", "work"}, flags(uids[0])
assert search("KEYWORD", "work") == search("FLAGGED") == [uids[0]]
ok(imap.uid("STORE", str(uids[0]), "-FLAGS", r"(\Flagged work)"))
ok(imap.uid("STORE", str(uids[1]), "FLAGS.SILENT", r"(\Seen \Answered)"))
assert flags(uids[0]) == {"$Forwarded"} and flags(uids[1]) == {r"\Seen", r"\Answered"}

# Folders.
for folder in ["Archive", FOLDER]:
    ok(imap.create(folder))
    ok(imap.subscribe(folder))
assert imap.create("Archive")[0] == "NO"
assert FOLDER in names(imap.list('""', "Archive/%"))
assert FOLDER in names(imap.lsub('""', "*"))
ok(imap.rename(FOLDER, "Archive/2024"))
assert {"Archive", "Archive/2024"} <= set(names(imap.list('""', "*"))) - {FOLDER}
assert imap.select("Missing")[0] == "NO"
ok(imap.select("INBOX"))

# APPEND, COPY, MOVE, EXPUNGE.
appended = b"Subject: Appended\r\n\r\n\xe4 \xff\r\n"
reply = ok(imap.append("Archive/2024", r"(\Seen \Draft)", '"13-Dec-2020 13:36:36 +0800"', appended))
uid = int(re.search(rb"APPENDUID \d+ (\d+)", reply[0])[1])
ok(imap.copy("1:2", "Archive/2024"))
ok(imap.uid("MOVE", str(uids[2]), "Archive/2024"))
assert imap.response("EXPUNGE")[1] == [b"3"]
assert search("ALL") == uids[:2] + uids[3:]
ok(imap.select("Archive/2024", readonly=True))
assert fetch(uid, "(BODY[])") == appended and flags(uid) == {r"\Seen", r"\Draft"}
assert b'INTERNALDATE "13-Dec-2020 ' in fetch(uid, "(INTERNALDATE)")
copies = search("ALL")
assert [fetch(uid, "(BODY[])") for uid in copies[1:]] == SOURCES[:3]
assert flags(copies[2]) == {r"\Seen", r"\Answered"}, "a copy has other flags"
assert imap.uid("STORE", str(uid), "+FLAGS", r"(\Deleted)")[0] == "NO" or r"\Deleted" not in flags(uid)
ok(imap.select("INBOX"))
ok(imap.store("1,4", "+FLAGS", r"(\Deleted)"))
assert ok(imap.expunge()) in ([b"1", b"3"], [b"4", b"1"])
assert search("ALL") == [uids[1], uids[3]]

# IDLE with a message that arrives, in two sessions. imaplib has no method for it before Python 3.14.
tag = imap._new_tag()
imap.send(tag + b" IDLE\r\n")
assert imap.readline().startswith(b"+")
send("Idle")
while not (line := imap.readline()).endswith(b"EXISTS\r\n"):
    assert line.startswith(b"* "), line
assert line == b"* 3 EXISTS\r\n", line
imap.send(b"DONE\r\n")
while not (line := imap.readline()).startswith(tag):
    assert line.startswith(b"* "), line
assert b" OK " in line, line
imap.untagged_responses.clear()
assert b"Subject: Idle\r\n" in fetch(search("SUBJECT", "Idle")[0], "(BODY[HEADER])")

for folder in ["Archive/2024", "Archive"]:
    ok(imap.delete(folder))
    imap.unsubscribe(folder)
assert imap.delete("INBOX")[0] == "NO"
assert not [name for name in names(imap.list()) if name.startswith("Archive")]
ok(imap.close())
imap.logout()

# Other logins.
imap = connect()
ok(imap.authenticate("PLAIN", lambda _: f"\0{USER}\0{PASSWORD}".encode()))
imap.logout()
imap = connect()
ok(imap.authenticate("XOAUTH2", lambda _: f"user={USER}\1auth=Bearer {TOKEN}\1\1".encode()))
assert ok(imap.select("INBOX")) == [b"3"]
imap.logout()
