-- The transcripts of sessions. Every node writes those of its own sessions, after the fact. They share no lock with the
-- messages. Losing the latest ones when the database crashes is acceptable, so commits are not waited for. Texts are
-- bytes here too.

-- Chunks of transcripts.
CREATE TABLE journal_pieces (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- ascends in the order in which chunks are written
    session bigint NOT NULL,
    number int NOT NULL,
    at bigint NOT NULL,                    -- Unix microseconds
    bytes bigint NOT NULL,                 -- its size for the limit
    life bigint NOT NULL,                  -- of the node that runs the session
    refused boolean NOT NULL,              -- whether something was refused in the session so far
    head bytea NOT NULL,                   -- the properties of the session, and the message that ends here
    lines bytea NOT NULL,
    UNIQUE (session, number)
);
CREATE INDEX journal_pieces_refused ON journal_pieces (session) WHERE refused;

-- The chunk that received a message.
CREATE TABLE journal_messages (
    mailbox bytea NOT NULL,
    id bigint NOT NULL,
    session bigint NOT NULL,
    number int NOT NULL,
    PRIMARY KEY (mailbox, id)
);
CREATE INDEX journal_messages_by_piece ON journal_messages (session, number);

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
    life bigint NOT NULL DEFAULT 0,        -- never reused
    seen timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO journal_nodes (number) SELECT generate_series(1, 63);
CREATE SEQUENCE journal_lives;

-- The heartbeat of a node. Returns its number and its life: the current ones, or new ones if the node is new or was
-- away for so long that another node has its number. Also returns the highest id of a session so far.
CREATE FUNCTION journal_attend(mine bigint) RETURNS TABLE (number int, life bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO off;
    RETURN QUERY
    UPDATE journal_nodes AS node SET seen = now() WHERE node.life = mine AND mine > 0
    RETURNING node.number, node.life, 0::bigint;
    IF FOUND THEN
        RETURN;
    END IF;
    -- Two that come at once must not get the same.
    PERFORM pg_advisory_xact_lock('journal_nodes'::regclass::oid::bigint);
    RETURN QUERY
    UPDATE journal_nodes AS node SET life = nextval('journal_lives'), seen = now()
    WHERE node.number = (SELECT longest.number FROM journal_nodes AS longest ORDER BY longest.seen, longest.number LIMIT 1)
    RETURNING node.number, node.life, (SELECT coalesce(max(journal_pieces.session), 0) FROM journal_pieces);
END $$;

-- Called when a node shuts down.
CREATE FUNCTION journal_leave(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO off;
    UPDATE journal_nodes SET seen = '-infinity' WHERE journal_nodes.life = mine;
END $$;

-- Adds chunks, except those that exist already, and the messages that they received.
CREATE FUNCTION journal_note(
    mine bigint, sessions bigint[], numbers int[], times bigint[], sizes bigint[], refusals boolean[], heads bytea[], texts bytea[],
    mailboxes bytea[], ids bigint[], sessions_of bigint[], numbers_of int[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    more bigint;
BEGIN
    SET LOCAL synchronous_commit TO off;
    WITH noted AS (
        INSERT INTO journal_pieces (session, number, at, bytes, life, refused, head, lines)
        SELECT given.session, given.number, given.at, given.bytes, mine, given.refused, given.head, given.lines
        FROM unnest(sessions, numbers, times, sizes, refusals, heads, texts) WITH ORDINALITY
            AS given (session, number, at, bytes, refused, head, lines, place)
        ORDER BY given.place
        ON CONFLICT DO NOTHING
        RETURNING journal_pieces.bytes
    )
    SELECT coalesce(sum(noted.bytes), 0) INTO more FROM noted;
    INSERT INTO journal_messages (mailbox, id, session, number)
    SELECT * FROM unnest(mailboxes, ids, sessions_of, numbers_of)
    ON CONFLICT DO NOTHING;
    UPDATE journal_state SET bytes = journal_state.bytes + more;
END $$;

-- Deletes chunks in the order in which they were written, while they exceed `room` bytes or are older than `deadline`.
-- Deletes at most `most`, and none if another node is doing so. Returns the number of deleted chunks.
CREATE FUNCTION journal_trim(room bigint, deadline bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    excess bigint;
    freed bigint := 0;
    victims bigint[] := '{}';
    piece record;
BEGIN
    SET LOCAL synchronous_commit TO off;
    IF NOT pg_try_advisory_xact_lock('journal_pieces'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    SELECT journal_state.bytes - room INTO excess FROM journal_state;
    FOR piece IN SELECT first.place, first.at, first.bytes FROM journal_pieces AS first ORDER BY first.place LIMIT most LOOP
        EXIT WHEN freed >= excess AND piece.at >= deadline;
        freed := freed + piece.bytes;
        victims := victims || piece.place;
    END LOOP;
    IF cardinality(victims) > 0 THEN
        WITH gone AS (
            DELETE FROM journal_pieces WHERE journal_pieces.place = ANY (victims)
            RETURNING journal_pieces.session, journal_pieces.number
        )
        DELETE FROM journal_messages USING gone
        WHERE journal_messages.session = gone.session AND journal_messages.number = gone.number;
        UPDATE journal_state SET bytes = journal_state.bytes - freed;
    END IF;
    RETURN cardinality(victims);
END $$;

-- Returns the chunks of sessions, last first: all of them, or `most` of each. With `single`, returns the first chunk,
-- that one and the last one.
CREATE FUNCTION journal_told(wanted bigint[], single int, most bigint, with_lines boolean)
RETURNS TABLE (session bigint, number int, at bigint, is_there boolean, head bytea, lines bytea) LANGUAGE sql STABLE AS $$
    SELECT piece.session, piece.number, piece.at,
        piece.life = ANY (ARRAY(SELECT node.life FROM journal_nodes AS node WHERE node.seen > now() - interval '1 min')),
        piece.head, CASE WHEN with_lines THEN piece.lines ELSE '' END
    FROM unnest(wanted) AS one (session) CROSS JOIN LATERAL (
        SELECT * FROM journal_pieces
        WHERE journal_pieces.session = one.session AND (
            single IS NULL OR journal_pieces.number IN (0, single)
            OR journal_pieces.number = (SELECT max(last.number) FROM journal_pieces AS last WHERE last.session = one.session)
        )
        ORDER BY journal_pieces.number DESC LIMIT most
    ) AS piece
    ORDER BY piece.session, piece.number DESC
$$;
