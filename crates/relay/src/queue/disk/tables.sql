CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    copy INTEGER NOT NULL,
    target TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipients TEXT NOT NULL,        -- JSON
    is_forwarded INTEGER NOT NULL,   -- whether a rule matched; otherwise it was released
    released_by TEXT,
    created INTEGER NOT NULL,        -- Unix nanoseconds, as all times
    expires INTEGER NOT NULL,
    state INTEGER NOT NULL,          -- 0 queued, 1 sending, 2 delivered, 3 failed, 4 cancelled
    is_claimed INTEGER NOT NULL,     -- whether a result is expected: it is being sent, or was cancelled meanwhile
    attempts INTEGER NOT NULL,
    due INTEGER NOT NULL,            -- the next attempt, or when it was due
    last_attempt INTEGER,
    last_reply TEXT NOT NULL
) STRICT;
CREATE INDEX entries_due ON entries (target, due, id) WHERE state = 0;
CREATE INDEX entries_expiring ON entries (expires) WHERE state = 0;
CREATE INDEX entries_finished ON entries (id) WHERE state >= 2;
CREATE INDEX entries_by_state ON entries (state, target);
CREATE INDEX entries_by_message ON entries (message, id);

-- The last attempt of each entry.
CREATE TABLE transcripts (
    entry INTEGER PRIMARY KEY,
    lines BLOB NOT NULL
) STRICT;

-- Messages up to this one were compared with the rules.
CREATE TABLE cursor (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    message INTEGER NOT NULL
) STRICT;

-- The id of this queue. Sent messages contain it.
CREATE TABLE identity (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    value TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES (1, lower(hex(randomblob(16))));
