//! The SQL statements. Each is one transaction. `changed` is the number of entries that were changed.
//!
//! A node is dead if its row is too old. A node without a row has no claims: it can claim only while its row is current,
//! and the row is deleted after its claims. So an entry that a new node has just claimed is never taken from it.

/// The columns that are needed for an entry.
macro_rules! columns {
    () => {
        "entry.id, entry.message, entry.mailbox, entry.copy, entry.target, entry.sender, entry.recipients,
            entry.is_forwarded, entry.released_by, entry.created, entry.expires, entry.state, entry.attempts, entry.due,
            entry.last_attempt, entry.last_reply, entry.claim"
    };
}

/// Inserts entries of the parameters 1 to 10, under a condition. The result `room` is computed before.
macro_rules! insert {
    ($condition:literal) => {
        concat!(
            "INSERT INTO relay_entries (message, mailbox, copy, target, sender, recipients, is_forwarded, released_by,
                created, expires, due)
            SELECT message, mailbox, copy, target, sender, recipients, is_forwarded, released_by, created, expires, created
            FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::boolean[],
                $8::bytea[], $9::bigint[], $10::bigint[]) WITH ORDINALITY
                AS given (message, mailbox, copy, target, sender, recipients, is_forwarded, released_by, created, expires,
                    place)
            WHERE ",
            $condition,
            " ORDER BY place RETURNING id"
        )
    };
}

/// Whether `$11` entries can be added if `$12` is the limit. They are not counted if it is null.
macro_rules! room {
    () => {
        "WITH counted AS MATERIALIZED (
            SELECT CASE WHEN $11::bigint > 0 AND $12::bigint IS NOT NULL
                THEN (SELECT count(*) FROM relay_entries WHERE state < 2) END AS waiting
        ), room AS MATERIALIZED (
            SELECT waiting, coalesce(waiting = 0 OR waiting + $11::bigint <= $12::bigint, true) AS has_room FROM counted
        )"
    };
}

/// Selects entries and changes them.
macro_rules! change {
    ($which:literal, $change:literal) => {
        concat!(
            "WITH locked AS MATERIALIZED (
                SELECT id FROM relay_entries WHERE ",
            $which,
            " ORDER BY id FOR UPDATE
            ), changed AS (
                UPDATE relay_entries AS entry SET ",
            $change,
            " FROM locked WHERE entry.id = locked.id RETURNING entry.id
            )
            SELECT count(*) AS changed FROM changed"
        )
    };
}

/// Lists entries.
macro_rules! list {
    ($which:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM relay_entries AS entry
            WHERE id < $1 AND ($2::bytea IS NULL OR target = $2) AND ($3::smallint IS NULL OR state = $3) AND ",
            $which,
            " ORDER BY id DESC LIMIT $4"
        )
    };
}

pub(super) const ADD: &str = concat!(
    room!(),
    ", added AS (",
    insert!("(SELECT has_room FROM room)"),
    ") SELECT waiting, has_room, ARRAY(SELECT id FROM added ORDER BY id) AS ids FROM room"
);

/// If another node moves the cursor at this moment, `was_expected` is still true, but nothing is moved.
pub(super) const FORWARD: &str = concat!(
    room!(),
    ", moved AS (
        UPDATE relay_cursor SET message = $14 WHERE message = $13 AND (SELECT has_room FROM room) RETURNING message
    ), added AS (",
    insert!("EXISTS (SELECT FROM moved)"),
    ")
    SELECT waiting, has_room, EXISTS (SELECT FROM moved) AS is_moved,
        EXISTS (SELECT FROM relay_cursor WHERE message = $13) AS was_expected
    FROM room"
);

pub(super) const ACQUIRE_CURSOR: &str = "
    INSERT INTO relay_cursor AS current (message, node, leased_until) VALUES ($1, $2, now() + make_interval(secs => $3))
    ON CONFLICT (single) DO UPDATE SET node = excluded.node, leased_until = excluded.leased_until
    WHERE current.node = excluded.node OR current.leased_until < now()
    RETURNING message";

pub(super) const DELETE_CURSOR: &str = "DELETE FROM relay_cursor WHERE node = $1 OR leased_until < now()";

/// Selects entries that can be claimed, under a condition.
macro_rules! claimable {
    ($which:literal) => {
        concat!(
            "SELECT id, due FROM relay_entries
            WHERE target = $1 AND state < 2 AND ",
            $which,
            " AND expires > $2 AND EXISTS (SELECT FROM current) AND (
                state = 0
                OR node = ANY (ARRAY(SELECT id FROM relay_nodes WHERE seen <= now() - make_interval(secs => $5)))
            )
            ORDER BY due, id LIMIT $3 FOR UPDATE SKIP LOCKED"
        )
    };
}

/// The row of the node is locked until the claim is committed, so that it cannot leave or refuse this claim meanwhile.
pub(super) const CLAIM: &str = concat!(
    "WITH current AS MATERIALIZED (
        SELECT id FROM relay_nodes
        WHERE id = $4 AND seen > now() - make_interval(secs => $5) AND refused_claims < $6 FOR SHARE
    ), due_now AS MATERIALIZED (",
    claimable!("due <= $2"),
    "), due_too_late AS MATERIALIZED (",
    claimable!("due > $7"),
    "), chosen AS MATERIALIZED (
        SELECT id FROM (SELECT id, due FROM due_now UNION ALL SELECT id, due FROM due_too_late) AS claimable
        ORDER BY due, id LIMIT $3
    )
    UPDATE relay_entries AS entry SET state = 1, node = $4, claim = $6 FROM chosen WHERE entry.id = chosen.id
    RETURNING ",
    columns!()
);

/// Lets all claims of the node up to a number get nothing, and waits for those that are running. Their replies were lost,
/// or a connection that was given up may still start them.
pub(super) const REFUSE_CLAIMS: &str =
    "UPDATE relay_nodes SET refused_claims = greatest(refused_claims, $2) WHERE id = $1";
pub(super) const RETURN_CLAIMS: &str =
    change!("node = $1 AND state = 1 AND claim = ANY ($2::bigint[])", "state = 0, node = NULL, claim = 0");
/// Fails claimed entries that cannot be read.
pub(super) const FAIL_UNREADABLE: &str = change!(
    "id = ANY ($3::bigint[]) AND node = $1 AND claim = $2 AND state = 1",
    "state = 3, node = NULL, claim = 0, last_reply = $4::bytea"
);

/// Records results. An entry that was cancelled stays cancelled. `changed` is the number of entries that are finished.
pub(super) const RECORD: &str = "
    WITH locked AS MATERIALIZED (
        SELECT entry.id, entry.state, given.released, given.state AS new_state, given.due, given.at, given.recipients,
            given.reply, given.transcript
        FROM relay_entries AS entry
        JOIN unnest($1::bigint[], $2::boolean[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[],
            $8::bytea[], $10::bigint[])
            AS given (id, released, state, due, at, recipients, reply, transcript, claim) ON entry.id = given.id
        WHERE entry.node = $9 AND entry.claim = given.claim AND entry.state IN (1, 4)
        ORDER BY entry.id FOR UPDATE OF entry
    ), changed AS (
        UPDATE relay_entries AS entry SET
            state = CASE WHEN entry.state = 1 THEN locked.new_state ELSE entry.state END,
            node = NULL,
            claim = 0,
            due = coalesce(locked.due, entry.due),
            attempts = CASE WHEN locked.released THEN entry.attempts ELSE entry.attempts + 1 END,
            last_attempt = coalesce(locked.at, entry.last_attempt),
            recipients = coalesce(locked.recipients, entry.recipients),
            last_reply = coalesce(locked.reply, entry.last_reply),
            transcript = coalesce(locked.transcript, entry.transcript)
        FROM locked WHERE entry.id = locked.id
        RETURNING entry.state
    )
    SELECT count(*) AS changed FROM changed WHERE state >= 2";

/// Deletes the finished entries below the highest `$1` of them.
pub(super) const PRUNE: &str = "
    DELETE FROM relay_entries WHERE state >= 2
        AND id <= (SELECT id FROM relay_entries WHERE state >= 2 ORDER BY id DESC OFFSET $1 LIMIT 1)";

pub(super) const NEXT_DUE: &str =
    "SELECT due FROM relay_entries WHERE state < 2 AND state = 0 AND target = $1 ORDER BY due LIMIT 1";

/// Entries that a dead node has claimed expire, too.
pub(super) const EXPIRE: &str = change!(
    "state < 2 AND expires <= $1 AND (
        state = 0 OR node = ANY (ARRAY(SELECT id FROM relay_nodes WHERE seen <= now() - make_interval(secs => $3)))
    )",
    "state = 3, node = NULL, claim = 0,
        last_reply = CASE WHEN entry.last_reply = '' THEN $2::bytea ELSE entry.last_reply END"
);

pub(super) const LIST: &str = list!("$5::bigint IS NULL");
pub(super) const LIST_OF_MESSAGE: &str = list!("message = $5");
pub(super) const LIST_FINISHED: &str = list!("$5::bigint IS NULL AND state >= 2");
pub(super) const FIND: &str = concat!("SELECT ", columns!(), " FROM relay_entries AS entry WHERE id = $1");
pub(super) const TRANSCRIPT: &str = "SELECT transcript FROM relay_entries WHERE id = $1";
pub(super) const COUNTS: &str =
    "SELECT state, target, count(*) AS count FROM relay_entries GROUP BY state, target ORDER BY state, target";
pub(super) const COUNT_WAITING: &str = "SELECT count(*) AS waiting FROM relay_entries WHERE state < 2";

pub(super) const CANCEL_IDS: &str = change!("id = ANY ($1::bigint[]) AND state < 2", "state = 4");
pub(super) const CANCEL_TARGET: &str = change!("state < 2 AND ($1::bytea IS NULL OR target = $1)", "state = 4");

pub(super) const RETRYABLE: &str = "
    SELECT id, state, attempts, recipients FROM relay_entries
    WHERE id > $1 AND state IN (0, 3, 4) AND ($2::bytea IS NULL OR target = $2) ORDER BY id LIMIT $3";
pub(super) const RETRYABLE_IDS: &str = "
    SELECT id, state, attempts, recipients FROM relay_entries
    WHERE id = ANY ($1::bigint[]) AND state IN (0, 3, 4) ORDER BY id";

/// Queues entries with new recipients. The recipients were computed from those that the entry had; they have not changed
/// if the number of attempts has not.
pub(super) const RETRY: &str = "
    WITH locked AS MATERIALIZED (
        SELECT entry.id, given.recipients FROM relay_entries AS entry
        JOIN unnest($1::bigint[], $2::int[], $3::bytea[]) AS given (id, attempts, recipients) ON entry.id = given.id
        WHERE entry.attempts = given.attempts AND entry.state IN (0, 3, 4)
        ORDER BY entry.id FOR UPDATE OF entry
    ), changed AS (
        UPDATE relay_entries AS entry
        SET state = 0, node = NULL, claim = 0, due = $4, expires = $5, recipients = locked.recipients
        FROM locked WHERE entry.id = locked.id RETURNING entry.id
    )
    SELECT count(*) AS changed FROM changed";

pub(super) const IDENTITY: &str = "SELECT value FROM relay_identity";

pub(super) const REGISTER: &str =
    "INSERT INTO relay_nodes (id, seen) VALUES (nextval('relay_node_ids'), now()) RETURNING id";
pub(super) const HEARTBEAT: &str =
    "INSERT INTO relay_nodes (id, seen) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
/// Deletes the rows of nodes that are dead for long and have no claims.
pub(super) const FORGET_NODES: &str = "
    DELETE FROM relay_nodes WHERE seen < now() - interval '1 hour'
        AND NOT EXISTS (SELECT FROM relay_entries WHERE relay_entries.node = relay_nodes.id AND relay_entries.state = 1)";

/// Marks the node as dead.
pub(super) const RETIRE: &str = "UPDATE relay_nodes SET seen = '-infinity' WHERE id = $1";
pub(super) const RELEASE_CLAIMS: &str = change!("node = $1 AND state = 1", "state = 0, node = NULL, claim = 0");
/// Deletes the row of the node, and ends its lease.
pub(super) const LEAVE: &str = "
    WITH ended AS (UPDATE relay_cursor SET leased_until = '-infinity' WHERE node = $1)
    DELETE FROM relay_nodes WHERE id = $1";
