"""Tests the server with Python's poplib: python3 pop3.py PORT TLS_PORT SOURCE_FILE

The mailbox `james` contains two messages. The source of the first is the content of the file. PORT offers STLS, TLS_PORT uses
implicit TLS. The password of every mailbox is `s3cret`. The second message is deleted.
"""

import poplib
import ssl
import sys

HOST = "127.0.0.1"
PASSWORD = "s3cret"
port, tls_port, source_file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with open(source_file, "rb") as file:
    source = file.read()
unverified = ssl._create_unverified_context()


def connect():
    return poplib.POP3(HOST, port, timeout=20)


def refused(call, *arguments):
    try:
        call(*arguments)
    except poplib.error_proto as error:
        return error.args[0]
    raise AssertionError("not refused")


def text(response):
    return b"".join(line + b"\r\n" for line in response[1])


pop = connect()
capabilities = pop.capa()
for name in ["TOP", "USER", "UIDL", "RESP-CODES", "PIPELINING", "UTF8", "STLS", "SASL"]:
    assert name in capabilities, (name, capabilities)
assert capabilities["SASL"] == ["PLAIN", "XOAUTH2", "OAUTHBEARER"], capabilities
pop.user("james")
assert refused(pop.pass_, "wrong").startswith(b"-ERR [AUTH]")
pop.user("James@example.org")
pop.pass_(PASSWORD)
count, octets = pop.stat()
assert count == 2, count
numbers = [line.split() for line in pop.list()[1]]
assert [int(number) for number, _ in numbers] == [1, 2], numbers
assert sum(int(size) for _, size in numbers) == octets, numbers
assert int(numbers[0][1]) == len(source), numbers
assert text(pop.retr(1)) == source
head, blank, body = source.partition(b"\r\n\r\n")
assert text(pop.top(1, 0)) == head + blank
assert text(pop.top(1, 1)) == head + blank + body.split(b"\r\n")[0] + b"\r\n"
ids = [line.split()[1] for line in pop.uidl()[1]]
assert len(set(ids)) == 2, ids
assert pop.uidl(2).split()[-1] == ids[1]
pop.noop()
pop.dele(1)
assert refused(pop.retr, 1).startswith(b"-ERR")
pop.rset()
assert pop.stat() == (count, octets)
pop.dele(2)
pop.quit()

pop = connect()
pop.apop("james", PASSWORD)
assert [line.split()[1] for line in pop.uidl()[1]] == ids[:1], "the second message was not deleted"
pop.quit()

pop = connect()
assert refused(pop.apop, "james", "wrong").startswith(b"-ERR [AUTH]")
pop.close()

pop = connect()
pop.stls(context=unverified)
assert "STLS" not in pop.capa()
pop.utf8()
pop.user("james")
pop.pass_(PASSWORD)
assert text(pop.retr(1)) == source
pop.quit()

pop = poplib.POP3_SSL(HOST, tls_port, context=unverified, timeout=20)
pop.user("james")
pop.pass_(PASSWORD)
assert text(pop.retr(1)) == source
pop.quit()
