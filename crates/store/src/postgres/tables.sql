-- The tables of messages. Texts of messages are bytes here: messages can contain zero bytes, which the type `text`
-- cannot, and names of mailboxes are ordered by their bytes, whatever the locale of the database.

-- The state of the whole store, in one row. Every change locks it first. So all changes of all nodes have one order,
-- which is also the order in which they become visible.
CREATE TABLE state (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    last_change bigint NOT NULL DEFAULT 0,         -- the number of the last change; about the microsecond in which it was made
    previous_change bigint NOT NULL DEFAULT 0,     -- the number of the last change before the last batch of messages
    last_id bigint NOT NULL DEFAULT 0,             -- the highest id of a copy so far
    last_trimmed bigint NOT NULL DEFAULT 0,        -- the highest number that was deleted from history
    messages bigint NOT NULL DEFAULT 0,            -- messages, counted once
    copies bigint NOT NULL DEFAULT 0,              -- rows of copies
    mailboxes bigint NOT NULL DEFAULT 0,           -- rows of mailboxes
    bytes bigint NOT NULL DEFAULT 0,               -- traces, and bodies counted once
    highest_free_number bigint NOT NULL DEFAULT 0, -- the highest number of a copy in mailboxes that are empty now
    -- Identifies the numbers of copies; the Unix time of creation.
    uid_validity bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint
) WITH (fillfactor = 10);
INSERT INTO state DEFAULT VALUES;

-- Mailboxes that are not empty.
CREATE TABLE mailboxes (
    name bytea PRIMARY KEY,
    messages bigint NOT NULL,
    unseen bigint NOT NULL,                -- not marked as read
    bytes bigint NOT NULL,                 -- the sum of the sizes of all copies
    version bigint NOT NULL,               -- the number of its last change
    last_number bigint NOT NULL            -- of the last copy
) WITH (fillfactor = 50);

-- One row per message and mailbox. The id is the number of the change that stored it.
CREATE TABLE copies (
    id bigint PRIMARY KEY,
    message bigint NOT NULL,               -- the id of the first copy of the message
    number bigint NOT NULL,                -- ascends in the mailbox, never reused
    received bigint NOT NULL,              -- Unix nanoseconds
    size bigint NOT NULL,                  -- of trace and body
    body bigint NOT NULL,                  -- the row of bodies
    modseq bigint NOT NULL,                -- the number of the last change of seen, flags or tags; at first the id
    shared boolean NOT NULL,               -- whether the body had other copies too
    seen boolean NOT NULL,
    flags smallint NOT NULL DEFAULT 0,     -- one bit per flag
    stored_marks smallint NOT NULL DEFAULT 0, -- the flags when it was stored, and 128 if it was seen then
    mailbox bytea NOT NULL,
    headline bytea NOT NULL,               -- lines: the sender, the subject, and every recipient
    trace bytea NOT NULL,                  -- the lines before the body in this mailbox
    tags bytea NOT NULL,                   -- lines: the tags
    details bytea NOT NULL,                -- lines: the envelope and a preview
    project bytea                          -- of the mailbox, if it is in one
) WITH (fillfactor = 95);
CREATE INDEX copies_by_mailbox ON copies (mailbox, id);
CREATE INDEX copies_by_age ON copies (received, id);
CREATE INDEX copies_by_shared_body ON copies (body) WHERE shared;
CREATE INDEX copies_by_project ON copies (project, id) WHERE project IS NOT NULL;
-- For the overview. They contain only messages with tags. The tags are not in the index: they can be longer than a row of
-- an index may be. There is no index for unread messages: marking a message as read would update all indexes of the table
-- then.
CREATE INDEX copies_tagged ON copies (id) WHERE tags <> '' AND NOT shared;
CREATE INDEX copies_tagged_shared ON copies (body) WHERE tags <> '' AND shared;
CREATE INDEX copies_tagged_in_project ON copies (project) WHERE project IS NOT NULL AND tags <> '';
CREATE INDEX copies_shared_in_project ON copies (project) WHERE project IS NOT NULL AND shared;

-- Message bodies as received, each once. They are not compressed, so that parts of a large one can be read.
CREATE TABLE bodies (
    id bigint PRIMARY KEY,
    bytes bytea NOT NULL
);
ALTER TABLE bodies ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Every batch of messages takes a number, and uses the numbers after it for its bodies.
CREATE SEQUENCE body_numbers INCREMENT 1000;

-- Changes that cannot be derived from the existing messages: deletions, and changes of read marks, flags and tags. They are
-- kept for a while, for nodes that have not read them yet.
CREATE TABLE history (
    number bigint PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    deleted boolean NOT NULL,              -- otherwise marks were changed
    changed_marks smallint,                -- the sum of 1 for seen, 2 for flags and 4 for tags
    id bigint NOT NULL,
    mailbox bytea NOT NULL,
    -- All marks after the change.
    seen boolean NOT NULL,
    flags smallint NOT NULL,
    tags bytea NOT NULL,
    modseq bigint NOT NULL,
    -- The others are null unless the copy was deleted.
    stored_marks smallint,
    message bigint,
    copy_number bigint,
    received bigint,
    size bigint,
    headline bytea,
    details bytea
);
CREATE INDEX history_by_id ON history (id) WHERE deleted;

-- What the functions return.
CREATE TYPE copy_change AS (
    number bigint, deleted boolean, changed_marks smallint, id bigint, mailbox bytea, received bigint, size bigint, seen boolean,
    flags smallint, modseq bigint, headline bytea, message bigint, copy_number bigint, tags bytea, details bytea,
    copy_numbers bigint[]
);
