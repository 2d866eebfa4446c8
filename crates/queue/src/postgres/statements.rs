//! The SQL statements. Each is one transaction. The first parameter is the name of the queue. `changed` is the number
//! of entries that were changed.
//!
//! A node is dead if its row is too old. A node without a row has no claims: it can claim only while its row is current,
//! and the row is deleted after its claims. So an entry that a new node has just claimed is never taken from it.

/// The columns that are needed for an entry.
macro_rules! columns {
    () => {
        columns!("entry.payload")
    };
    ($payload:literal) => {
        concat!(
            "entry.id, entry.message, entry.mailbox, entry.target, entry.key, entry.created, entry.expires, entry.state,
            entry.attempts, entry.due, entry.last_attempt, entry.last_reply, entry.claim, ",
            $payload
        )
    };
}

/// Inserts entries of the parameters 2 to 8, under a condition. The result `room` is computed before.
macro_rules! insert {
    ($condition:literal) => {
        concat!(
            "INSERT INTO queue_entries (queue, message, mailbox, target, key, payload, created, expires, due)
            SELECT $1, message, mailbox, target, key, payload, created, expires, created
            FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bigint[], $8::bigint[])
                WITH ORDINALITY AS given (message, mailbox, target, key, payload, created, expires, place)
            WHERE ",
            $condition,
            " ORDER BY place ON CONFLICT DO NOTHING RETURNING id"
        )
    };
}

/// Whether `$9` entries can be added if `$10` is the limit. They are not counted if it is null.
macro_rules! room {
    () => {
        "WITH counted AS MATERIALIZED (
            SELECT CASE WHEN $9::bigint > 0 AND $10::bigint IS NOT NULL
                THEN (SELECT count(*) FROM queue_entries WHERE queue = $1 AND state < 2) END AS waiting
        ), room AS MATERIALIZED (
            SELECT waiting, coalesce(waiting = 0 OR waiting + $9::bigint <= $10::bigint, true) AS has_room FROM counted
        )"
    };
}

/// Selects entries and changes them.
macro_rules! change {
    ($which:literal, $change:literal) => {
        concat!(
            "WITH locked AS MATERIALIZED (
                SELECT id FROM queue_entries WHERE queue = $1 AND ",
            $which,
            " ORDER BY id FOR UPDATE
            ), changed AS (
                UPDATE queue_entries AS entry SET ",
            $change,
            " FROM locked WHERE entry.id = locked.id RETURNING entry.id
            )
            SELECT count(*) AS changed FROM changed"
        )
    };
}

/// Lists entries. `$7` omits their payloads.
macro_rules! list {
    ($which:literal) => {
        concat!(
            "SELECT ",
            columns!("CASE WHEN $7 THEN '' ELSE entry.payload END AS payload"),
            " FROM queue_entries AS entry
            WHERE queue = $1 AND id < $2 AND ($3::bytea IS NULL OR target = $3) AND ($4::smallint IS NULL OR state = $4)
                AND ",
            $which,
            " ORDER BY id DESC LIMIT $5"
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
        UPDATE queue_cursors SET message = $12
        WHERE queue = $1 AND message = $11 AND (SELECT has_room FROM room) RETURNING message
    ), added AS (",
    insert!("EXISTS (SELECT FROM moved)"),
    ")
    SELECT waiting, has_room, EXISTS (SELECT FROM moved) AS is_moved,
        EXISTS (SELECT FROM queue_cursors WHERE queue = $1 AND message = $11) AS was_expected
    FROM room"
);

pub(super) const ACQUIRE_CURSOR: &str = "
    INSERT INTO queue_cursors AS current (queue, message, node, leased_until)
    VALUES ($1, $2, $3, now() + make_interval(secs => $4))
    ON CONFLICT (queue) DO UPDATE SET node = excluded.node, leased_until = excluded.leased_until
    WHERE current.node = excluded.node OR current.leased_until < now()
    RETURNING message";

pub(super) const DELETE_CURSOR: &str = "
    WITH deleted AS (
        DELETE FROM queue_cursors WHERE queue = $1 AND (node = $2 OR leased_until < now()) RETURNING queue
    )
    SELECT EXISTS (SELECT FROM deleted) OR NOT EXISTS (SELECT FROM queue_cursors WHERE queue = $1) AS is_deleted";

pub(super) const SET_CHECKPOINT: &str = "UPDATE queue_nodes SET checkpoint = $3 WHERE queue = $1 AND id = $2";
/// A row gets another `xmin` with every change, so also with every heartbeat.
pub(super) const ABANDONED_CHECKPOINTS: &str = "
    SELECT id, checkpoint, xmin::text AS version FROM queue_nodes
    WHERE queue = $1 AND seen <= now() - make_interval(secs => $2) AND checkpoint IS NOT NULL";
pub(super) const DELETE_ABANDONED: &str = "
    UPDATE queue_nodes SET checkpoint = NULL FROM unnest($2::bigint[], $3::text[]) AS given (id, version)
    WHERE queue = $1 AND queue_nodes.id = given.id AND queue_nodes.xmin::text = given.version";

/// Cancels the entries of targets that did not exist before or are removed. `changed` is their number.
pub(super) const SET_TARGETS: &str = "
    WITH removed AS (
        DELETE FROM queue_targets WHERE queue = $1 AND name <> ALL ($2::bytea[])
    ), added AS (
        INSERT INTO queue_targets (queue, name, since) SELECT $1, name, $3 FROM unnest($2::bytea[]) AS given (name)
        ON CONFLICT DO NOTHING
    ), locked AS MATERIALIZED (
        SELECT id FROM queue_entries
        WHERE queue = $1 AND state < 2 AND target <> ALL (
            ARRAY(SELECT name FROM queue_targets WHERE queue = $1 AND name = ANY ($2::bytea[]))
        )
        ORDER BY id FOR UPDATE
    ), changed AS (
        UPDATE queue_entries AS entry
        SET state = 4, payload = CASE WHEN length(entry.payload) > $4::bigint THEN '' ELSE entry.payload END
        FROM locked WHERE entry.id = locked.id RETURNING entry.id
    )
    SELECT count(*) AS changed FROM changed";
pub(super) const TARGETS: &str = "SELECT name, is_paused, since FROM queue_targets WHERE queue = $1 ORDER BY name";
pub(super) const SET_PAUSED: &str = "
    INSERT INTO queue_targets (queue, name, is_paused) VALUES ($1, $2, $3)
    ON CONFLICT (queue, name) DO UPDATE SET is_paused = excluded.is_paused";

/// Whether the target `$2` is not paused.
macro_rules! not_paused {
    () => {
        "NOT EXISTS (SELECT FROM queue_targets WHERE queue = $1 AND name = $2 AND is_paused)"
    };
}

/// Selects entries that can be claimed, under a condition.
macro_rules! claimable {
    ($which:literal) => {
        concat!(
            "SELECT id, due FROM queue_entries
            WHERE queue = $1 AND target = $2 AND state < 2 AND ",
            $which,
            " AND expires > $3 AND EXISTS (SELECT FROM current) AND (
                state = 0
                OR node = ANY (ARRAY(SELECT id FROM queue_nodes WHERE seen <= now() - make_interval(secs => $6)))
            )
            ORDER BY due, id LIMIT $4 FOR UPDATE SKIP LOCKED"
        )
    };
}

/// The row of the node is locked until the claim is committed, so that it cannot leave or refuse this claim meanwhile.
pub(super) const CLAIM: &str = concat!(
    "WITH current AS MATERIALIZED (
        SELECT id FROM queue_nodes
        WHERE id = $5 AND seen > now() - make_interval(secs => $6) AND refused_claims < $7 AND ",
    not_paused!(),
    " FOR SHARE
    ), due_now AS MATERIALIZED (",
    claimable!("due <= $3"),
    "), due_too_late AS MATERIALIZED (",
    claimable!("due > $8"),
    "), chosen AS MATERIALIZED (
        SELECT id FROM (SELECT id, due FROM due_now UNION ALL SELECT id, due FROM due_too_late) AS claimable
        ORDER BY due, id LIMIT $4
    )
    UPDATE queue_entries AS entry SET state = 1, node = $5, claim = $7 FROM chosen WHERE entry.id = chosen.id
    RETURNING ",
    columns!()
);

/// Lets all claims of the node up to a number get nothing, and waits for those that are running. Their replies were lost,
/// or a connection that was given up may still start them.
pub(super) const REFUSE_CLAIMS: &str =
    "UPDATE queue_nodes SET refused_claims = greatest(refused_claims, $2) WHERE id = $1";
pub(super) const RETURN_CLAIMS: &str =
    change!("node = $2 AND state = 1 AND claim = ANY ($3::bigint[])", "state = 0, node = NULL, claim = 0");

/// Records results. An entry that was cancelled stays cancelled. `changed` is the number of entries that are finished.
pub(super) const RECORD: &str = "
    WITH locked AS MATERIALIZED (
        SELECT entry.id, entry.state, given.state AS new_state, given.due, given.at, given.payload,
            given.reply, given.log
        FROM queue_entries AS entry
        JOIN unnest($3::bigint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bytea[],
            $10::bytea[])
            AS given (id, claim, state, due, at, payload, reply, log) ON entry.id = given.id
        WHERE entry.queue = $1 AND entry.node = $2 AND entry.claim = given.claim AND entry.state IN (1, 4)
        ORDER BY entry.id FOR UPDATE OF entry
    ), changed AS (
        UPDATE queue_entries AS entry SET
            state = CASE WHEN entry.state = 1 THEN coalesce(locked.new_state, 0) ELSE entry.state END,
            node = NULL,
            claim = 0,
            due = coalesce(locked.due, entry.due),
            attempts = entry.attempts + (locked.new_state IS NOT NULL)::int,
            last_attempt = coalesce(locked.at, entry.last_attempt),
            payload = CASE WHEN greatest(entry.state, locked.new_state) >= 2 AND length(locked.payload) > $11::bigint
                THEN '' ELSE coalesce(locked.payload, entry.payload) END,
            last_reply = coalesce(locked.reply, entry.last_reply),
            attempt_log = coalesce(locked.log, entry.attempt_log)
        FROM locked WHERE entry.id = locked.id
        RETURNING entry.state
    )
    SELECT count(*) AS changed FROM changed WHERE state >= 2";

/// Deletes the finished entries below the highest `$2` of them.
pub(super) const PRUNE: &str = "
    DELETE FROM queue_entries WHERE queue = $1 AND state >= 2
        AND id <= (SELECT id FROM queue_entries WHERE queue = $1 AND state >= 2 ORDER BY id DESC OFFSET $2 LIMIT 1)";

pub(super) const NEXT_DUE: &str = concat!(
    "SELECT due FROM queue_entries WHERE queue = $1 AND state < 2 AND state = 0 AND target = $2 AND ",
    not_paused!(),
    " ORDER BY due LIMIT 1"
);

/// Entries that a dead node has claimed expire, too.
pub(super) const EXPIRE: &str = "
    WITH locked AS MATERIALIZED (
        SELECT id FROM queue_entries
        WHERE queue = $1 AND state < 2 AND expires <= $2 AND (
            state = 0 OR node = ANY (ARRAY(SELECT id FROM queue_nodes WHERE seen <= now() - make_interval(secs => $4)))
        )
        ORDER BY id FOR UPDATE
    )
    UPDATE queue_entries AS entry SET state = 3, node = NULL, claim = 0,
        last_reply = CASE WHEN entry.last_reply = '' THEN $3::bytea ELSE entry.last_reply END,
        payload = CASE WHEN length(entry.payload) > $5::bigint THEN '' ELSE entry.payload END
    FROM locked WHERE entry.id = locked.id RETURNING entry.target";
pub(super) const POSTPONE_EXPIRY: &str = change!("state = 0 AND expires < $2", "expires = $2");

pub(super) const LIST: &str = list!("$6::bigint IS NULL");
pub(super) const LIST_OF_MESSAGE: &str = list!("message = $6");
pub(super) const LIST_FINISHED: &str = list!("$6::bigint IS NULL AND state >= 2");
pub(super) const FIND: &str =
    concat!("SELECT ", columns!(), " FROM queue_entries AS entry WHERE queue = $1 AND id = $2");
pub(super) const ATTEMPT_LOG: &str = "SELECT attempt_log FROM queue_entries WHERE queue = $1 AND id = $2";
pub(super) const COUNTS: &str = "
    SELECT state, target, count(*) AS count, sum(length(payload))::bigint AS bytes FROM queue_entries WHERE queue = $1
    GROUP BY state, target ORDER BY state, target";
pub(super) const CANCEL: &str = change!(
    "state < 2 AND ($2::bytea IS NULL OR target = $2) AND ($3::bigint[] IS NULL OR id = ANY ($3::bigint[]))",
    "state = 4, payload = CASE WHEN length(entry.payload) > $4::bigint THEN '' ELSE entry.payload END"
);

pub(super) const RETRYABLE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM queue_entries AS entry
    WHERE queue = $1 AND ($2::bytea IS NULL OR target = $2) AND ($3::bigint[] IS NULL OR id = ANY ($3::bigint[]))
        AND id > $4 AND state IN (0, 3, 4) ORDER BY id LIMIT $5"
);

/// Queues entries with new payloads. The payloads were computed from those that the entries had; they have not changed
/// if the number of attempts has not.
pub(super) const REQUEUE: &str = "
    WITH locked AS MATERIALIZED (
        SELECT entry.id, given.payload FROM queue_entries AS entry
        JOIN unnest($2::bigint[], $3::int[], $4::bytea[]) AS given (id, attempts, payload) ON entry.id = given.id
        WHERE entry.queue = $1 AND entry.attempts = given.attempts AND entry.state IN (0, 3, 4)
        ORDER BY entry.id FOR UPDATE OF entry
    )
    UPDATE queue_entries AS entry
    SET state = 0, node = NULL, claim = 0, due = $5, expires = $6, payload = locked.payload
    FROM locked WHERE entry.id = locked.id RETURNING entry.target";

pub(super) const IDENTITY: &str = "SELECT value, secret FROM queue_identity";

pub(super) const REGISTER: &str =
    "INSERT INTO queue_nodes (id, queue, seen) VALUES (nextval('queue_node_ids'), $1, now()) RETURNING id";
pub(super) const HEARTBEAT: &str = "
    INSERT INTO queue_nodes (queue, id, seen) VALUES ($1, $2, now()) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
/// Deletes the rows of nodes that are dead for long and have no claims and no checkpoint.
pub(super) const FORGET_NODES: &str = "
    DELETE FROM queue_nodes WHERE seen < now() - interval '1 hour' AND checkpoint IS NULL
        AND NOT EXISTS (SELECT FROM queue_entries WHERE queue_entries.node = queue_nodes.id AND queue_entries.state = 1)";

/// Marks the node as dead.
pub(super) const RETIRE: &str = "UPDATE queue_nodes SET seen = '-infinity' WHERE queue = $1 AND id = $2";
pub(super) const RELEASE_CLAIMS: &str = change!("node = $2 AND state = 1", "state = 0, node = NULL, claim = 0");
/// Deletes the row of the node unless it has a checkpoint, and ends its lease.
pub(super) const LEAVE: &str = "
    WITH ended AS (UPDATE queue_cursors SET leased_until = '-infinity' WHERE queue = $1 AND node = $2)
    DELETE FROM queue_nodes WHERE queue = $1 AND id = $2 AND checkpoint IS NULL";
