"""The messages that every client reads: how they are sent by SMTP, and their sources in the REST API."""

import json
import smtplib
import time
import urllib.request

NESTED = b"""\
From: Carl <carl@y.org>
Subject: Nested
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="inner"

--inner
Content-Type: text/plain

The nested text.
--inner
Content-Type: text/html

<p>The nested page.</p>
--inner--
"""

MESSAGES = [
    b"""\
From: Ann Lee <ann@x.org>
To: Ben <ben@y.org>, carl@y.org
Cc: dora@z.org
Date: Fri, 1 Mar 2024 10:00:00 +0200
Subject: Invoice 1001
Message-ID: <1@x.org>

The first mail.
.a dot
..
From here on nothing is special.
""",
    """\
From: =?utf-8?q?J=C3=B6rg?= <joerg@x.org>
To: ben@y.org
Date: Sat, 2 Mar 2024 10:00:00 +0000
Subject: =?utf-8?b?R3LDvMOfZSBhdXMgS8O2bG4=?=
Message-ID: <2@x.org>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Zwei Stück Käse, bitte.
""".encode(),
    b"""\
From: Ann Lee <ann@x.org>
To: ben@y.org
Date: Sun, 3 Mar 2024 10:00:00 +0000
Subject: Parts
Message-ID: <3@x.org>
In-Reply-To: <1@x.org>
References: <1@x.org>
X-Test: a value
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="outer"

--outer
Content-Type: multipart/alternative; boundary="middle"

--middle
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Caf=C3=A9
--middle
Content-Type: text/html; charset=utf-8

<p>A page</p>
--middle--

--outer
Content-Type: application/octet-stream; name="data.bin"
Content-Disposition: attachment; filename="data.bin"
Content-Transfer-Encoding: base64

AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
--outer
Content-Type: message/rfc822

"""
    + NESTED
    + b"""
--outer--
""",
    b"""\
From: ann@x.org
To: ben@y.org
Date: Mon, 4 Mar 2024 10:00:00 +0000
Subject: Large
Message-ID: <4@x.org>

"""
    + b"".join(b"Line %05d of a text that is read in slices.\n" % number for number in range(2500)),
    b"""\
From: ann@x.org
To: ben@y.org
Date: Tue, 5 Mar 2024 10:00:00 +0000
Subject: Empty
Message-ID: <5@x.org>

""",
]


def deliver(host, smtp_port, user):
    """Sends the messages to this user, one after the other."""
    with smtplib.SMTP(host, smtp_port, timeout=20) as smtp:
        for message in MESSAGES:
            smtp.sendmail("ann@x.org", [f"{user}@example.org"], message.replace(b"\n", b"\r\n"), ["BODY=8BITMIME"])


def sources(host, http_port, user):
    """Returns the sources of the messages that the server has stored for this user, in the order of delivery."""
    url = f"http://{host}:{http_port}/api/v1/mailbox/{user}"

    def get(path):
        with urllib.request.urlopen(url + path, timeout=20) as response:
            return response.read()

    deadline = time.monotonic() + 20
    while len(ids := [message["id"] for message in json.loads(get(""))]) < len(MESSAGES):
        assert time.monotonic() < deadline, ids
        time.sleep(0.05)
    return [get(f"/{id}/source") for id in ids]
