CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    target TEXT NOT NULL,
    key TEXT,
    payload BLOB NOT NULL,
    size INTEGER NOT NULL,           -- of the payload
    created INTEGER NOT NULL,        -- Unix nanoseconds, as all times
    expires INTEGER NOT NULL,
    state INTEGER NOT NULL,          -- 0 queued, 1 sending, 2 delivered, 3 failed, 4 cancelled
    claim INTEGER NOT NULL,          -- whose result is expected: it is being sent, or was cancelled meanwhile; or 0
    attempts INTEGER NOT NULL,
    due INTEGER NOT NULL,            -- the next attempt, or when it was due
    last_attempt INTEGER,
    last_reply TEXT NOT NULL
) STRICT;
CREATE INDEX entries_due ON entries (target, due, id) WHERE state = 0;
CREATE INDEX entries_expiring ON entries (expires) WHERE state = 0;
CREATE INDEX entries_finished ON entries (id) WHERE state >= 2;
CREATE INDEX entries_by_state ON entries (state, target, size);
CREATE INDEX entries_by_message ON entries (message, id);
CREATE UNIQUE INDEX entries_by_key ON entries (target, key) WHERE key IS NOT NULL;

-- What is kept of the last attempt of each entry.
CREATE TABLE attempt_logs (
    entry INTEGER PRIMARY KEY,
    log BLOB NOT NULL
) STRICT;

CREATE TABLE targets (
    name TEXT PRIMARY KEY,
    is_paused INTEGER NOT NULL,
    since INTEGER NOT NULL           -- the last message before the target was set
) STRICT;

-- Entries were added for all messages up to this one.
CREATE TABLE cursor (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    message INTEGER NOT NULL
) STRICT;

-- Entries were added for all messages up to this one that this process, or an earlier one, has stored.
CREATE TABLE checkpoints (
    is_current INTEGER PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;

-- The id of this queue, and a secret, which is never sent.
CREATE TABLE identity (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    value TEXT NOT NULL,
    secret TEXT NOT NULL
) STRICT;
INSERT INTO identity VALUES (1, lower(hex(randomblob(16))), lower(hex(randomblob(16))));
