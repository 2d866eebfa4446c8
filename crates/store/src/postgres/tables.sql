-- The tables of version 1. Texts of messages are bytes here: messages can contain zero bytes, which the type `text`
-- cannot, and names of mailboxes are ordered by their bytes, whatever the locale of the database.

-- The state of the whole store, in one row. Every change locks it first. So all changes of all nodes have one order,
-- which is also the order in which they become visible.
CREATE TABLE state (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    clock bigint NOT NULL DEFAULT 0,       -- the number of the last change; about the microsecond in which it was made
    last_id bigint NOT NULL DEFAULT 0,     -- the highest id of a message so far
    forgotten bigint NOT NULL DEFAULT 0,   -- the highest number that was deleted from past
    messages bigint NOT NULL DEFAULT 0,    -- rows of copies
    mailboxes bigint NOT NULL DEFAULT 0,   -- rows of mailboxes
    bytes bigint NOT NULL DEFAULT 0        -- traces, and bodies counted once
) WITH (fillfactor = 10);
INSERT INTO state DEFAULT VALUES;

-- Mailboxes that are not empty.
CREATE TABLE mailboxes (
    name bytea PRIMARY KEY,
    messages bigint NOT NULL,
    unseen bigint NOT NULL,                -- not marked as read
    bytes bigint NOT NULL,                 -- the sum of the sizes of all copies
    version bigint NOT NULL                -- the number of its last change
) WITH (fillfactor = 50);

-- One row per message and mailbox. The id is the number of the change that stored it.
CREATE TABLE copies (
    id bigint PRIMARY KEY,
    received bigint NOT NULL,              -- Unix nanoseconds
    size bigint NOT NULL,                  -- of trace and body
    body bigint NOT NULL,                  -- the row of bodies
    shared boolean NOT NULL,               -- whether the body had other copies too
    seen boolean NOT NULL,
    mailbox bytea NOT NULL,
    headline bytea NOT NULL,               -- lines: the sender, the subject, and every recipient
    trace bytea NOT NULL                   -- the lines before the body in this mailbox
) WITH (fillfactor = 95);
CREATE INDEX copies_by_mailbox ON copies (mailbox, id);
CREATE INDEX copies_by_age ON copies (received, id);
CREATE INDEX copies_by_shared_body ON copies (body) WHERE shared;

-- Message bodies as received, each once. They are not compressed, so that parts of a large one can be read.
CREATE TABLE bodies (
    id bigint PRIMARY KEY,
    bytes bytea NOT NULL
);
ALTER TABLE bodies ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Every batch of messages takes a number, and uses the numbers after it for its bodies.
CREATE SEQUENCE body_numbers INCREMENT 1000;

-- Changes that cannot be derived from the existing messages: deletions and marks. They are kept for a while, for nodes
-- that have not read them yet.
CREATE TABLE past (
    number bigint PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    deleted boolean NOT NULL,              -- otherwise it was marked, and most of the other columns are null
    id bigint NOT NULL,
    mailbox bytea NOT NULL,
    received bigint,
    size bigint,
    seen boolean NOT NULL,
    headline bytea
);
CREATE INDEX past_by_id ON past (id) WHERE deleted;

-- What the functions return.
CREATE TYPE change AS (
    number bigint, deleted boolean, id bigint, mailbox bytea, received bigint, size bigint, seen boolean, headline bytea, ids bigint[]
);
