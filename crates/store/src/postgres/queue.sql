-- The queues of the relay and the webhooks, which all nodes share. They have no lock in common with the messages. Texts
-- are bytes here too, and all times are those of the database's clock, in Unix nanoseconds where they come from nodes.

CREATE TABLE queue_entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    message bigint NOT NULL,
    mailbox bytea NOT NULL,
    target bytea NOT NULL,
    key bytea,
    payload bytea NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    state smallint NOT NULL DEFAULT 0,     -- 0 queued, 1 sending, 2 delivered, 3 failed, 4 cancelled
    node bigint,                           -- from which a result is expected: it is being sent, or was cancelled meanwhile
    claim bigint NOT NULL DEFAULT 0,       -- the number of the claim of this node, or 0
    attempts int NOT NULL DEFAULT 0,
    due bigint NOT NULL,                   -- the next attempt, or when it was due
    last_attempt bigint,
    last_reply bytea NOT NULL DEFAULT '',
    attempt_log bytea                      -- of the last attempt
);
CREATE INDEX queue_entries_due ON queue_entries (queue, target, due, id) WHERE state < 2;
CREATE INDEX queue_entries_expiring ON queue_entries (queue, expires) WHERE state < 2;
CREATE INDEX queue_entries_finished ON queue_entries (queue, id) WHERE state >= 2;
CREATE INDEX queue_entries_claimed ON queue_entries (node) WHERE state = 1;
CREATE INDEX queue_entries_by_state ON queue_entries (queue, state, target);
CREATE INDEX queue_entries_by_message ON queue_entries (message, id);
CREATE UNIQUE INDEX queue_entries_by_key ON queue_entries (queue, target, key) WHERE key IS NOT NULL;

-- The nodes that send. While a node has claimed entries, its row exists.
CREATE TABLE queue_nodes (
    id bigint PRIMARY KEY,
    queue text NOT NULL,
    seen timestamptz NOT NULL,             -- the last heartbeat
    refused_claims bigint NOT NULL DEFAULT 0, -- claims up to this number get nothing
    checkpoint bigint                        -- the node has added entries for all messages up to this one that it has stored
) WITH (fillfactor = 10);
CREATE SEQUENCE queue_node_ids;

CREATE TABLE queue_targets (
    queue text,
    name bytea,
    is_paused boolean NOT NULL DEFAULT false,
    since bigint NOT NULL DEFAULT 0,       -- the last message before the target was set
    PRIMARY KEY (queue, name)
);

-- Entries were added for all messages up to this one.
CREATE TABLE queue_cursors (
    queue text PRIMARY KEY,
    message bigint NOT NULL,
    node bigint NOT NULL,                  -- that forwards
    leased_until timestamptz NOT NULL      -- then another node may
) WITH (fillfactor = 10);

-- The id of the queues of this database, which is the same for all nodes. Sent messages contain it. The secret is never sent.
CREATE TABLE queue_identity (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    value text NOT NULL,
    secret text NOT NULL
);
INSERT INTO queue_identity (value, secret)
VALUES (replace(gen_random_uuid()::text, '-', ''), replace(gen_random_uuid()::text, '-', ''));
