-- The transcripts of sessions. Every node writes those of its own sessions, after the fact. They share no lock with the
-- messages. Losing the latest ones when the database crashes is acceptable, so commits are not waited for. Texts are
-- bytes here too.

-- Groups of consecutive chunks of a transcript. Compression would take most of the time that writing them takes.
CREATE TABLE journal_groups (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- ascends in the order in which groups are written
    session bigint NOT NULL,
    number int NOT NULL,                   -- of the first chunk
    at bigint NOT NULL,                    -- of the last chunk, Unix microseconds
    bytes bigint NOT NULL,                 -- its size for the limit
    incarnation bigint NOT NULL,           -- of the node that runs the session
    refused boolean NOT NULL,              -- whether something was refused in the session so far
    first_id bigint,                       -- the lowest id of the messages that the chunks received
    last_id bigint,                        -- the highest
    info bytea NOT NULL,                   -- JSON: the properties of the session
    chunks bytea NOT NULL,                 -- JSON: the chunks without their lines
    lines bytea NOT NULL,
    UNIQUE (session, number)
);
ALTER TABLE journal_groups ALTER COLUMN chunks SET STORAGE EXTERNAL, ALTER COLUMN lines SET STORAGE EXTERNAL;
CREATE INDEX journal_groups_refused ON journal_groups (session) WHERE refused;
CREATE INDEX journal_groups_by_message ON journal_groups (last_id) WHERE last_id IS NOT NULL;

-- The total size.
CREATE TABLE journal_state (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    bytes bigint NOT NULL DEFAULT 0        -- of all groups
) WITH (fillfactor = 10);
INSERT INTO journal_state DEFAULT VALUES;

-- The nodes. Each has a number while it runs, which makes the ids of its sessions unique. Number 0 is used by nodes
-- that have no number yet.
CREATE TABLE journal_nodes (
    number int PRIMARY KEY,
    incarnation bigint NOT NULL DEFAULT 0, -- never reused
    seen timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO journal_nodes (number) SELECT generate_series(1, 63);
CREATE SEQUENCE journal_incarnations;

-- The heartbeat of a node. Returns its number and its incarnation: the current ones, or new ones if the node is new or was
-- away for so long that another node has its number. Also returns the highest id of a session so far.
CREATE FUNCTION journal_heartbeat(mine bigint) RETURNS TABLE (number int, incarnation bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO off;
    RETURN QUERY
    UPDATE journal_nodes AS node SET seen = now() WHERE node.incarnation = mine AND mine > 0
    RETURNING node.number, node.incarnation, 0::bigint;
    IF FOUND THEN
        RETURN;
    END IF;
    -- Two nodes that start at the same time must not get the same number.
    PERFORM pg_advisory_xact_lock('journal_nodes'::regclass::oid::bigint);
    RETURN QUERY
    UPDATE journal_nodes AS node SET incarnation = nextval('journal_incarnations'), seen = now()
    WHERE node.number = (SELECT longest.number FROM journal_nodes AS longest ORDER BY longest.seen, longest.number LIMIT 1)
    RETURNING node.number, node.incarnation, (SELECT coalesce(max(journal_groups.session), 0) FROM journal_groups);
END $$;

-- Called when a node shuts down.
CREATE FUNCTION journal_leave(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO off;
    UPDATE journal_nodes SET seen = '-infinity' WHERE journal_nodes.incarnation = mine;
END $$;

-- Adds groups of chunks, except those that exist already.
CREATE FUNCTION journal_append(
    mine bigint, sessions bigint[], numbers int[], times bigint[], sizes bigint[], refusals boolean[],
    first_ids bigint[], last_ids bigint[], infos bytea[], encoded_chunks bytea[], texts bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    new_bytes bigint;
BEGIN
    SET LOCAL synchronous_commit TO off;
    WITH written AS (
        INSERT INTO journal_groups (session, number, at, bytes, incarnation, refused, first_id, last_id, info, chunks, lines)
        SELECT given.session, given.number, given.at, given.bytes, mine, given.refused, given.first_id, given.last_id,
            given.info, given.chunks, given.lines
        FROM unnest(sessions, numbers, times, sizes, refusals, first_ids, last_ids, infos, encoded_chunks, texts) WITH ORDINALITY
            AS given (session, number, at, bytes, refused, first_id, last_id, info, chunks, lines, position)
        ORDER BY given.position
        ON CONFLICT (session, number) DO NOTHING
        RETURNING journal_groups.bytes
    )
    SELECT coalesce(sum(written.bytes), 0) INTO new_bytes FROM written;
    UPDATE journal_state SET bytes = journal_state.bytes + new_bytes;
END $$;

-- Deletes groups in the order in which they were written, while they exceed `max_bytes` or are older than `deadline`.
-- Deletes at most `max_groups`, and none if another node is doing so. Returns the number of deleted groups.
CREATE FUNCTION journal_trim(max_bytes bigint, deadline bigint, max_groups bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    excess bigint;
    freed bigint := 0;
    deleted_groups bigint[] := '{}';
    oldest record;
BEGIN
    SET LOCAL synchronous_commit TO off;
    IF NOT pg_try_advisory_xact_lock('journal_groups'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    SELECT journal_state.bytes - max_bytes INTO excess FROM journal_state;
    FOR oldest IN SELECT first.position, first.at, first.bytes FROM journal_groups AS first ORDER BY first.position LIMIT max_groups LOOP
        EXIT WHEN freed >= excess AND oldest.at >= deadline;
        freed := freed + oldest.bytes;
        deleted_groups := deleted_groups || oldest.position;
    END LOOP;
    IF cardinality(deleted_groups) > 0 THEN
        DELETE FROM journal_groups WHERE journal_groups.position = ANY (deleted_groups);
        UPDATE journal_state SET bytes = journal_state.bytes - freed;
    END IF;
    RETURN cardinality(deleted_groups);
END $$;

-- Returns the number of the group of a session that contains a chunk, or would contain it if it was not deleted.
CREATE FUNCTION journal_group_of(of_session bigint, chunk int) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT max(number) FROM journal_groups WHERE session = of_session AND number <= chunk
$$;

-- Returns the groups of sessions, last first: all of them, or those with the last `max_chunks` chunks. With `single`, returns
-- those with the first chunk, that one and the last one.
CREATE FUNCTION journal_read(sessions bigint[], single int, max_chunks bigint, with_lines boolean)
RETURNS TABLE (session bigint, number int, is_running boolean, info bytea, chunks bytea, lines bytea) LANGUAGE sql STABLE AS $$
    SELECT part.session, part.number,
        part.incarnation = ANY (ARRAY(SELECT node.incarnation FROM journal_nodes AS node WHERE node.seen > now() - interval '1 min')),
        part.info, part.chunks, CASE WHEN with_lines THEN part.lines ELSE '' END
    FROM unnest(sessions) AS wanted (session)
    CROSS JOIN LATERAL (
        SELECT max(stored.number) AS last FROM journal_groups AS stored WHERE stored.session = wanted.session
    ) AS newest
    -- OFFSET 0 keeps the planner from calling the function for every group.
    CROSS JOIN LATERAL (
        SELECT journal_group_of(wanted.session, single) AS single_group,
            coalesce(journal_group_of(wanted.session, (newest.last - max_chunks + 1)::int), 0) AS first OFFSET 0
    ) AS bounds
    CROSS JOIN LATERAL (
        SELECT * FROM journal_groups AS stored
        WHERE stored.session = wanted.session AND stored.number >= bounds.first
            AND (single IS NULL OR stored.number IN (0, bounds.single_group, newest.last))
        OFFSET 0
    ) AS part
    ORDER BY part.session, part.number DESC
$$;
