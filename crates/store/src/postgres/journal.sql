-- The transcripts of sessions. Every node writes those of its own sessions, after the fact. They share no lock with the
-- messages. Losing the latest ones when the database crashes is acceptable, so commits are not waited for. Texts are
-- bytes here too.

-- Chunks of transcripts.
CREATE TABLE journal_chunks (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- ascends in the order in which chunks are written
    session bigint NOT NULL,
    number int NOT NULL,
    at bigint NOT NULL,                    -- Unix microseconds
    bytes bigint NOT NULL,                 -- its size for the limit
    incarnation bigint NOT NULL,           -- of the node that runs the session
    refused boolean NOT NULL,              -- whether something was refused in the session so far
    head bytea NOT NULL,                   -- JSON: the properties of the session, and the message that ends here
    lines bytea NOT NULL,
    UNIQUE (session, number)
);
CREATE INDEX journal_chunks_refused ON journal_chunks (session) WHERE refused;

-- The chunk that received a message.
CREATE TABLE journal_messages (
    mailbox bytea NOT NULL,
    id bigint NOT NULL,
    session bigint NOT NULL,
    number int NOT NULL,
    PRIMARY KEY (mailbox, id)
);
CREATE INDEX journal_messages_by_chunk ON journal_messages (session, number);

-- The total size.
CREATE TABLE journal_state (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    bytes bigint NOT NULL DEFAULT 0        -- of all chunks
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
    RETURNING node.number, node.incarnation, (SELECT coalesce(max(journal_chunks.session), 0) FROM journal_chunks);
END $$;

-- Called when a node shuts down.
CREATE FUNCTION journal_leave(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO off;
    UPDATE journal_nodes SET seen = '-infinity' WHERE journal_nodes.incarnation = mine;
END $$;

-- Adds chunks, except those that exist already, and the messages that they received.
CREATE FUNCTION journal_append(
    mine bigint, sessions bigint[], numbers int[], times bigint[], sizes bigint[], refusals boolean[], heads bytea[], texts bytea[],
    mailboxes bytea[], ids bigint[], sessions_of bigint[], numbers_of int[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    new_bytes bigint;
BEGIN
    SET LOCAL synchronous_commit TO off;
    WITH written AS (
        INSERT INTO journal_chunks (session, number, at, bytes, incarnation, refused, head, lines)
        SELECT given.session, given.number, given.at, given.bytes, mine, given.refused, given.head, given.lines
        FROM unnest(sessions, numbers, times, sizes, refusals, heads, texts) WITH ORDINALITY
            AS given (session, number, at, bytes, refused, head, lines, position)
        ORDER BY given.position
        ON CONFLICT DO NOTHING
        RETURNING journal_chunks.bytes
    )
    SELECT coalesce(sum(written.bytes), 0) INTO new_bytes FROM written;
    INSERT INTO journal_messages (mailbox, id, session, number)
    SELECT * FROM unnest(mailboxes, ids, sessions_of, numbers_of)
    ON CONFLICT DO NOTHING;
    UPDATE journal_state SET bytes = journal_state.bytes + new_bytes;
END $$;

-- Deletes chunks in the order in which they were written, while they exceed `max_bytes` or are older than `deadline`.
-- Deletes at most `max_chunks`, and none if another node is doing so. Returns the number of deleted chunks.
CREATE FUNCTION journal_trim(max_bytes bigint, deadline bigint, max_chunks bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    excess bigint;
    freed bigint := 0;
    deleted_chunks bigint[] := '{}';
    chunk record;
BEGIN
    SET LOCAL synchronous_commit TO off;
    IF NOT pg_try_advisory_xact_lock('journal_chunks'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    SELECT journal_state.bytes - max_bytes INTO excess FROM journal_state;
    FOR chunk IN SELECT first.position, first.at, first.bytes FROM journal_chunks AS first ORDER BY first.position LIMIT max_chunks LOOP
        EXIT WHEN freed >= excess AND chunk.at >= deadline;
        freed := freed + chunk.bytes;
        deleted_chunks := deleted_chunks || chunk.position;
    END LOOP;
    IF cardinality(deleted_chunks) > 0 THEN
        WITH gone AS (
            DELETE FROM journal_chunks WHERE journal_chunks.position = ANY (deleted_chunks)
            RETURNING journal_chunks.session, journal_chunks.number
        )
        DELETE FROM journal_messages USING gone
        WHERE journal_messages.session = gone.session AND journal_messages.number = gone.number;
        UPDATE journal_state SET bytes = journal_state.bytes - freed;
    END IF;
    RETURN cardinality(deleted_chunks);
END $$;

-- Returns the chunks of sessions, last first: all of them, or `max_chunks` of each. With `single`, returns the first
-- chunk, that one and the last one.
CREATE FUNCTION journal_read(sessions bigint[], single int, max_chunks bigint, with_lines boolean)
RETURNS TABLE (session bigint, number int, at bigint, is_running boolean, head bytea, lines bytea) LANGUAGE sql STABLE AS $$
    SELECT chunk.session, chunk.number, chunk.at,
        chunk.incarnation = ANY (ARRAY(SELECT node.incarnation FROM journal_nodes AS node WHERE node.seen > now() - interval '1 min')),
        chunk.head, CASE WHEN with_lines THEN chunk.lines ELSE '' END
    FROM unnest(sessions) AS wanted (session) CROSS JOIN LATERAL (
        SELECT * FROM journal_chunks
        WHERE journal_chunks.session = wanted.session AND (
            single IS NULL OR journal_chunks.number IN (0, single)
            OR journal_chunks.number = (SELECT max(last.number) FROM journal_chunks AS last WHERE last.session = wanted.session)
        )
        ORDER BY journal_chunks.number DESC LIMIT max_chunks
    ) AS chunk
    ORDER BY chunk.session, chunk.number DESC
$$;
