-- The queue of the relay, which all nodes share. It has no lock in common with the messages. Texts are bytes here too,
-- and all times are those of the database's clock, in Unix nanoseconds where they come from nodes.

CREATE TABLE relay_entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message bigint NOT NULL,
    mailbox bytea NOT NULL,
    copy bigint NOT NULL,
    target bytea NOT NULL,
    sender bytea NOT NULL,
    recipients bytea NOT NULL,             -- JSON
    is_forwarded boolean NOT NULL,         -- whether a rule matched; otherwise it was released
    released_by bytea,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    state smallint NOT NULL DEFAULT 0,     -- 0 queued, 1 sending, 2 delivered, 3 failed, 4 cancelled
    node bigint,                           -- from which a result is expected: it is being sent, or was cancelled meanwhile
    claim bigint NOT NULL DEFAULT 0,       -- the number of the claim of this node, or 0
    attempts int NOT NULL DEFAULT 0,
    due bigint NOT NULL,                   -- the next attempt, or when it was due
    last_attempt bigint,
    last_reply bytea NOT NULL DEFAULT '',
    transcript bytea                       -- of the last attempt
);
CREATE INDEX relay_entries_due ON relay_entries (target, due, id) WHERE state < 2;
CREATE INDEX relay_entries_expiring ON relay_entries (expires) WHERE state < 2;
CREATE INDEX relay_entries_finished ON relay_entries (id) WHERE state >= 2;
CREATE INDEX relay_entries_claimed ON relay_entries (node) WHERE state = 1;
CREATE INDEX relay_entries_by_state ON relay_entries (state, target);
CREATE INDEX relay_entries_by_message ON relay_entries (message, id);

-- The nodes that send. While a node has claimed entries, its row exists.
CREATE TABLE relay_nodes (
    id bigint PRIMARY KEY,
    seen timestamptz NOT NULL,             -- the last heartbeat
    refused_claims bigint NOT NULL DEFAULT 0 -- claims up to this number get nothing
) WITH (fillfactor = 10);
CREATE SEQUENCE relay_node_ids;

-- Messages up to this one were compared with the rules.
CREATE TABLE relay_cursor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    message bigint NOT NULL,
    node bigint NOT NULL,                  -- that forwards
    leased_until timestamptz NOT NULL      -- then another node may
) WITH (fillfactor = 10);

-- The id of this queue, which is the same for all nodes. Sent messages contain it.
CREATE TABLE relay_identity (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    value text NOT NULL
);
INSERT INTO relay_identity (value) VALUES (replace(gen_random_uuid()::text, '-', ''));
