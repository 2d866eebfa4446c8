"""Runs the tests that are part of IMAPClient: livetest.py INI_FILE

TestSocketTimeout is left out: it tests the client, and expects that a server on the same machine takes longer than 10 µs.
"""

import imaplib
import sys

from imapclient import livetest

# The tests compare envelopes as sequences. They have been objects for years, so that the comparison fails with every server.
livetest.Envelope.__len__ = lambda self: 10
# The tests with sequence numbers call this method, which imaplib does not have.
imaplib.IMAP4.move = lambda self, messages, folder: self._simple_command("MOVE", messages, folder)

sys.argv += ["TestGeneral", "TestWithUIDs", "TestWithoutUIDs"]
livetest.main()
