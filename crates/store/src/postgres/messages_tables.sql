-- The tables of version 3: a message as a whole is the set of its copies, and each copy has tags and details. Nodes of
-- version 2 may run at the same time, so columns are only added.

-- In this order, because most statements lock the tables in it. If there is a deadlock or a long transaction, the node
-- tries again. Other nodes wait as long as this one, so it does not wait for long.
SET LOCAL lock_timeout TO '2s';
LOCK TABLE state, mailboxes, copies, past IN ACCESS EXCLUSIVE MODE;

-- All of these are null in rows of an earlier version that were not migrated yet (see `migrate_copies`).
ALTER TABLE copies
    ADD COLUMN message bigint,             -- the id of the message, which is the id of its first copy
    ADD COLUMN number bigint,              -- ascends in the mailbox, never reused
    ADD COLUMN tags bytea,                 -- lines: the tags
    ADD COLUMN details bytea;              -- lines: the envelope and a preview; null too if a node of version 2 stored it

ALTER TABLE mailboxes
    ADD COLUMN last_number bigint NOT NULL DEFAULT 0,
    ADD COLUMN last_migrated_number bigint NOT NULL DEFAULT 0;
-- Existing copies get the numbers up to here.
UPDATE mailboxes SET last_number = messages;

ALTER TABLE state
    ADD COLUMN extra_copies bigint NOT NULL DEFAULT 0,         -- copies except the first of each message
    ADD COLUMN highest_free_number bigint NOT NULL DEFAULT 0,  -- the highest number in mailboxes that are empty now
    ADD COLUMN last_change bigint NOT NULL DEFAULT 0,          -- the number of the last change of messages by version 3
    ADD COLUMN first_to_migrate bigint NOT NULL DEFAULT 0,     -- the lowest id that may need a migration
    ADD COLUMN last_to_migrate bigint NOT NULL DEFAULT -1;     -- the highest one
SET LOCAL enable_seqscan TO off;
UPDATE state SET
    extra_copies = (SELECT count(*) - count(DISTINCT copies.body) FROM copies WHERE copies.shared),
    first_to_migrate = CASE WHEN state.messages > 0 THEN 0 ELSE state.last_id + 1 END,
    last_to_migrate = state.last_id;
SET LOCAL enable_seqscan TO on;

-- A row with `deleted` = false is a change of the tags if they are not null, otherwise a mark. Nodes of version 2 read
-- both as marks, and `seen` is the current value in both.
ALTER TABLE past
    ADD COLUMN message bigint,
    ADD COLUMN copy_number bigint,
    ADD COLUMN tags bytea,
    ADD COLUMN details bytea;

-- What the functions of version 3 return.
CREATE TYPE copy_change AS (
    number bigint, deleted boolean, id bigint, mailbox bytea, received bigint, size bigint, seen boolean, headline bytea,
    message bigint, copy_number bigint, tags bytea, details bytea, ids bigint[], copy_numbers bigint[]
);

-- Refuses a change by a function of version 2 that was already running when the tables were migrated, and that waited
-- for them. It would not set the new columns. The caller can retry.
CREATE FUNCTION refuse_change_of_version_2() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the tables were migrated during this change' USING ERRCODE = 'serialization_failure';
END $$;
CREATE TRIGGER refuse_change_of_version_2 BEFORE UPDATE OF messages ON state
    FOR EACH ROW WHEN (NEW.last_change = OLD.last_change) EXECUTE FUNCTION refuse_change_of_version_2();
