-- All changes. Each is one function, so that a change is one statement: no transaction waits for a node that crashed in
-- the middle of it. All functions return rows of the same type. The first row contains the number of the last change
-- before; the others are described at each function.
--
-- Nodes of the previous version may run while a later version is installed. So a function never changes its meaning, only
-- its name.

-- Returns the number after which a change that is made now is numbered.
CREATE FUNCTION change_base(last_change bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT greatest(last_change, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- Returns the rows of the history with numbers after `after`, up to `last`.
CREATE FUNCTION history_between(after bigint, last bigint) RETURNS SETOF copy_change LANGUAGE sql STABLE AS $$
    SELECT number, deleted, changed_marks, id, mailbox, received, size, seen, flags, modseq, headline, message, copy_number, tags,
        details, NULL::bigint[]
    FROM history WHERE number > after AND number <= last ORDER BY number
$$;

-- Deletes copies, in this order, as the changes that follow the number `last`. The caller has locked `state`. Returns the
-- deleted copies, without a first row.
CREATE FUNCTION delete_copies(deleted_ids bigint[], last bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    final CONSTANT bigint := last + cardinality(deleted_ids);
    deleted_copies bigint;
    deleted_messages bigint;
    deleted_mailboxes bigint;
    deleted_bytes bigint;
    shared_bodies bigint[];
    shared_bytes bigint;
    names bytea[];
    free_number bigint;
BEGIN
    WITH gone AS (
        DELETE FROM copies WHERE copies.id = ANY (deleted_ids) RETURNING copies.*
    ), recorded AS (
        INSERT INTO history (number, deleted, id, mailbox, received, size, seen, flags, modseq, stored_marks, headline, message,
            copy_number, tags, details)
        SELECT last + given.position, true, gone.id, gone.mailbox, gone.received, gone.size, gone.seen, gone.flags, gone.modseq,
            gone.stored_marks, gone.headline, gone.message, gone.number, gone.tags, gone.details
        FROM unnest(deleted_ids) WITH ORDINALITY AS given (id, position) JOIN gone USING (id)
    ), counted AS (
        UPDATE mailboxes
        SET messages = mailboxes.messages - less.messages, unseen = mailboxes.unseen - less.unseen,
            bytes = mailboxes.bytes - less.bytes, version = final
        FROM (
            SELECT gone.mailbox, count(*) AS messages, count(*) FILTER (WHERE NOT gone.seen) AS unseen, sum(gone.size) AS bytes
            FROM gone GROUP BY gone.mailbox
        ) AS less
        WHERE mailboxes.name = less.mailbox
    ), freed AS (
        DELETE FROM bodies WHERE bodies.id IN (SELECT gone.body FROM gone WHERE NOT gone.shared)
    )
    SELECT count(*), count(*) FILTER (WHERE NOT gone.shared),
        coalesce(sum(CASE WHEN gone.shared THEN length(gone.trace) ELSE gone.size END), 0),
        array_agg(DISTINCT gone.body) FILTER (WHERE gone.shared), array_agg(DISTINCT gone.mailbox)
    INTO deleted_copies, deleted_messages, deleted_bytes, shared_bodies, names
    FROM gone;
    IF shared_bodies IS NOT NULL THEN
        WITH freed AS (
            DELETE FROM bodies
            WHERE bodies.id = ANY (shared_bodies)
                AND NOT EXISTS (SELECT FROM copies WHERE copies.body = bodies.id AND copies.shared)
            RETURNING length(bodies.bytes) AS bytes
        )
        SELECT deleted_messages + count(*), coalesce(sum(freed.bytes), 0) INTO deleted_messages, shared_bytes FROM freed;
        deleted_bytes := deleted_bytes + shared_bytes;
    END IF;
    WITH emptied AS (
        DELETE FROM mailboxes WHERE mailboxes.name = ANY (names) AND mailboxes.messages = 0 RETURNING mailboxes.last_number
    )
    SELECT count(*), max(emptied.last_number) INTO deleted_mailboxes, free_number FROM emptied;
    UPDATE state
    SET last_change = final, messages = state.messages - deleted_messages, copies = state.copies - deleted_copies,
        mailboxes = state.mailboxes - deleted_mailboxes, bytes = state.bytes - deleted_bytes,
        highest_free_number = greatest(state.highest_free_number, free_number);
    RETURN QUERY SELECT * FROM history_between(last, final);
END $$;

-- Deletes copies as a change of its own, made now. Returns the first row, then the deleted copies.
CREATE FUNCTION delete_copies_now(deleted_ids bigint[], before bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    result copy_change;
BEGIN
    result.number := before;
    RETURN NEXT result;
    IF cardinality(deleted_ids) > 0 THEN
        RETURN QUERY SELECT * FROM delete_copies(deleted_ids, change_base(before));
    END IF;
END $$;

-- Adds messages. There are three groups of arrays, whose elements are counted from 1: messages (`new_bodies` to
-- `headlines`), copies (`copy_messages` to `details`) and mailboxes (`names` to `last_copies`). A copy refers to its
-- message and its mailbox, and has an index among the copies of each of them: from 0 in the message, from 1 in the mailbox.
-- The ids of the copies follow the last change, and each is at least its `lowest_ids`, which ascend. The last copy of each
-- mailbox is in `last_copies`, and its project in `projects`, and its
-- limits in `caps` and `mailbox_bytes`; each of these three is null if no mailbox has one. `seen_copies` has the number of
-- copies of each mailbox that are marked as read, and is null like `marks`, the flags of each copy and 128 if it is marked as
-- read, if no copy has any. Returns in the first row, for each mailbox, the number before those of its copies. Then returns
-- the evicted copies. After a limit was lowered, many copies have to be evicted. Other changes wait for this one, so the
-- rest is evicted with the next messages. Everything that can be computed from the messages is passed in, because that
-- costs less, and elements are read by their index, because joins of wide rows cost more. Each statement costs as much as
-- several rows, so there are few of them.
CREATE FUNCTION append_messages(
    new_bodies bytea[], shared boolean[], received bigint[], headlines bytea[],
    copy_messages int[], message_indexes int[], copy_mailboxes int[], mailbox_indexes int[], lowest_ids bigint[], sizes bigint[],
    traces bytea[], tags bytea[], marks smallint[], details bytea[],
    names bytea[], projects bytea[], name_copies bigint[], seen_copies bigint[], name_bytes bigint[], last_copies int[],
    caps bigint[], mailbox_bytes bigint[], new_bytes bigint, max_bytes bigint
) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    copies_count CONSTANT int := cardinality(copy_messages);
    first_body CONSTANT bigint := nextval('body_numbers');
    max_evicted CONSTANT bigint := 1000;
    result copy_change;
    before bigint;
    last bigint;
    total_bytes bigint;
    free_number bigint;
    existing int[];
    numbers bigint[];
    is_exceeded boolean;
    evicted_ids bigint[];
    first bigint;
    first_excess bigint;
    excess bigint;
BEGIN
    -- What takes longest comes before the lock.
    INSERT INTO bodies SELECT first_body + index, new_bodies[index] FROM generate_series(1, cardinality(new_bodies)) AS index;
    UPDATE state
    SET previous_change = state.last_change, last_change = greatest(state.last_change + copies_count, lowest_ids[copies_count]),
        last_id = greatest(state.last_change + copies_count, lowest_ids[copies_count]),
        messages = state.messages + cardinality(new_bodies), copies = state.copies + copies_count, bytes = state.bytes + new_bytes
    RETURNING state.previous_change, state.last_change, state.bytes, state.highest_free_number INTO before, last, total_bytes, free_number;
    WITH updated AS (
        UPDATE mailboxes
        SET messages = mailboxes.messages + name_copies[added.index],
            unseen = mailboxes.unseen + name_copies[added.index] - coalesce(seen_copies[added.index], 0),
            bytes = mailboxes.bytes + name_bytes[added.index], last_number = mailboxes.last_number + name_copies[added.index],
            version = greatest(before + last_copies[added.index], lowest_ids[last_copies[added.index]])
        FROM unnest(names) WITH ORDINALITY AS added (name, index) WHERE mailboxes.name = added.name
        RETURNING added.index::int, mailboxes.last_number - name_copies[added.index] AS number,
            mailboxes.messages > caps[added.index] OR mailboxes.bytes > mailbox_bytes[added.index] AS is_exceeded
    )
    SELECT array_agg(updated.index), array_agg(updated.number ORDER BY updated.index), bool_or(updated.is_exceeded)
    INTO existing, numbers, is_exceeded
    FROM updated;
    IF existing IS NULL OR cardinality(existing) < cardinality(names) THEN
        WITH added AS (
            INSERT INTO mailboxes (name, messages, unseen, bytes, version, last_number)
            SELECT names[index], name_copies[index], name_copies[index] - coalesce(seen_copies[index], 0), name_bytes[index],
                greatest(before + last_copies[index], lowest_ids[last_copies[index]]), free_number + name_copies[index]
            FROM generate_series(1, cardinality(names)) AS index WHERE index <> ALL (coalesce(existing, '{}'))
        )
        UPDATE state SET mailboxes = state.mailboxes + cardinality(names) - coalesce(cardinality(existing), 0);
        numbers := ARRAY(
            SELECT mailboxes.last_number - name_copies[added.index]
            FROM unnest(names) WITH ORDINALITY AS added (name, index) JOIN mailboxes USING (name) ORDER BY added.index
        );
        is_exceeded := caps IS NOT NULL OR mailbox_bytes IS NOT NULL;
    END IF;
    INSERT INTO copies (id, modseq, received, size, body, shared, seen, flags, stored_marks, mailbox, headline, trace, message,
        number, tags, details, project)
    SELECT greatest(before + index, lowest_ids[index]), greatest(before + index, lowest_ids[index]),
        received[copy_messages[index]], sizes[index], first_body + copy_messages[index], shared[copy_messages[index]],
        coalesce(marks[index] >= 128, false), coalesce(marks[index] & 127, 0), coalesce(marks[index], 0),
        names[copy_mailboxes[index]],
        headlines[copy_messages[index]], traces[index], greatest(before + index, lowest_ids[index]) - message_indexes[index],
        numbers[copy_mailboxes[index]] + mailbox_indexes[index], tags[index], details[index], projects[copy_mailboxes[index]]
    FROM generate_series(1, copies_count) AS index;
    result.number := before;
    result.copy_numbers := numbers;
    RETURN NEXT result;

    -- Both limits of a mailbox evict its first copies. What is above its size is evicted in steps.
    first := last;
    WHILE is_exceeded AND last - first < max_evicted LOOP
        evicted_ids := ARRAY(
            SELECT evicted.id
            FROM generate_series(1, cardinality(names)) AS index
            JOIN mailboxes ON mailboxes.name = names[index]
                AND (mailboxes.messages > caps[index] OR mailboxes.bytes > mailbox_bytes[index]),
            LATERAL (
                SELECT first.id
                FROM (
                    SELECT copies.id, row_number() OVER (ORDER BY copies.id) AS position,
                        sum(copies.size) OVER (ORDER BY copies.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS freed
                    FROM (
                        SELECT copies.id, copies.size FROM copies WHERE copies.mailbox = mailboxes.name ORDER BY copies.id
                        LIMIT CASE WHEN mailboxes.bytes > mailbox_bytes[index] THEN greatest(mailboxes.messages - caps[index], 100)
                            ELSE mailboxes.messages - caps[index] END
                    ) AS copies
                ) AS first
                WHERE first.position <= mailboxes.messages - caps[index]
                    OR coalesce(first.freed, 0) < mailboxes.bytes - mailbox_bytes[index]
            ) AS evicted
            ORDER BY evicted.id LIMIT greatest(max_evicted, copies_count)
        );
        EXIT WHEN cardinality(evicted_ids) = 0;
        RETURN QUERY SELECT * FROM delete_copies(evicted_ids, last);
        last := last + cardinality(evicted_ids);
        EXIT WHEN mailbox_bytes IS NULL;
    END LOOP;

    first := last;
    WHILE max_bytes > 0 AND total_bytes > max_bytes LOOP
        SELECT state.bytes - max_bytes INTO excess FROM state;
        EXIT WHEN excess <= 0;
        -- The store never grows, however much remains to be evicted.
        first_excess := coalesce(first_excess, excess);
        EXIT WHEN last - first >= max_evicted AND first_excess - excess >= new_bytes;
        -- What a copy frees is known unless its body is shared. Such a copy is the last of its step.
        evicted_ids := ARRAY(
            SELECT oldest.id
            FROM (
                SELECT copies.received, copies.id,
                    sum(copies.size) OVER before_it AS freed, bool_or(copies.shared) OVER before_it AS is_unknown
                FROM (SELECT * FROM copies ORDER BY copies.received, copies.id LIMIT 100) AS copies
                WINDOW before_it AS (ORDER BY copies.received, copies.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            ) AS oldest
            WHERE coalesce(oldest.freed, 0) < excess AND NOT coalesce(oldest.is_unknown, false)
            ORDER BY oldest.received, oldest.id
        );
        EXIT WHEN cardinality(evicted_ids) = 0;
        RETURN QUERY SELECT * FROM delete_copies(evicted_ids, last);
        last := last + cardinality(evicted_ids);
    END LOOP;
END $$;

-- Removes copies. Returns those that existed.
CREATE FUNCTION remove_copies(names bytea[], ids bigint[]) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    existing bigint[];
BEGIN
    SELECT state.last_change INTO before FROM state FOR UPDATE;
    existing := ARRAY(
        SELECT DISTINCT copies.id FROM unnest(names, ids) AS given (name, id)
        JOIN copies ON copies.id = given.id AND copies.mailbox = given.name
        ORDER BY copies.id
    );
    RETURN QUERY SELECT * FROM delete_copies_now(existing, before);
END $$;

-- Removes the first copies of a mailbox. Returns them.
CREATE FUNCTION purge_mailbox(name bytea, last bigint, max_copies bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    first bigint[];
BEGIN
    SELECT state.last_change INTO before FROM state FOR UPDATE;
    first := ARRAY(
        SELECT copies.id FROM copies WHERE copies.mailbox = name AND copies.id <= last ORDER BY copies.id LIMIT max_copies
    );
    RETURN QUERY SELECT * FROM delete_copies_now(first, before);
END $$;

-- Removes the oldest copies, unless another node is doing so. Returns them, or no rows at all.
CREATE FUNCTION expire_copies(deadline bigint, max_copies bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    oldest bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM copies WHERE copies.received < deadline)
        OR NOT pg_try_advisory_xact_lock('state'::regclass::oid::bigint) THEN
        RETURN;
    END IF;
    SELECT state.last_change INTO before FROM state FOR UPDATE;
    oldest := ARRAY(
        SELECT copies.id FROM copies WHERE copies.received < deadline ORDER BY copies.received, copies.id LIMIT max_copies
    );
    RETURN QUERY SELECT * FROM delete_copies_now(oldest, before);
END $$;

-- Changes the marks of copies. Null keeps a value; `new_seen` to `if_modseqs` are null if all of their elements are. An update
-- is made only if the copy has the number in `if_modseqs`, if that is not null. Updates are made one after the other: so a
-- copy can be in several of them. Returns, for each update whose copy exists, a row without a number: the position of the
-- update as `id`, and the marks and which of them have changed, which are null if the copy had another number. Then returns
-- the changes, one for each update that has changed a mark.
CREATE FUNCTION update_copies(
    names bytea[], ids bigint[], new_seen boolean[], new_flags smallint[], new_tags bytea[], if_modseqs bigint[]
) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    result copy_change;
    before bigint;
    base bigint;
    last bigint;
    given record;
    old record;
BEGIN
    SELECT state.last_change INTO before FROM state FOR UPDATE;
    base := change_base(before);
    last := base;
    result.number := before;
    RETURN NEXT result;
    FOR given IN
        SELECT * FROM unnest(names, ids, new_seen, new_flags, new_tags, if_modseqs) WITH ORDINALITY
            AS given (name, id, seen, flags, tags, if_modseq, position)
    LOOP
        SELECT copies.seen, copies.flags, copies.tags, copies.modseq INTO old
        FROM copies WHERE copies.id = given.id AND copies.mailbox = given.name;
        CONTINUE WHEN NOT FOUND;
        result := NULL;
        result.id := given.position;
        IF given.if_modseq IS NULL OR given.if_modseq = old.modseq THEN
            result.seen := coalesce(given.seen, old.seen);
            result.flags := coalesce(given.flags, old.flags);
            result.tags := coalesce(given.tags, old.tags);
            result.changed_marks := (result.seen <> old.seen)::int + 2 * (result.flags <> old.flags)::int
                + 4 * (result.tags <> old.tags)::int;
            IF result.changed_marks = 0 THEN
                result.modseq := old.modseq;
            ELSE
                last := last + 1;
                result.modseq := last;
                UPDATE copies SET seen = result.seen, flags = result.flags, tags = result.tags, modseq = result.modseq
                WHERE copies.id = given.id;
                INSERT INTO history (number, deleted, changed_marks, id, mailbox, seen, flags, tags, modseq)
                VALUES (last, false, result.changed_marks, given.id, given.name, result.seen, result.flags, result.tags, last);
            END IF;
        END IF;
        RETURN NEXT result;
    END LOOP;
    IF last > base THEN
        UPDATE mailboxes SET unseen = mailboxes.unseen + changed.unseen, version = changed.version
        FROM (
            SELECT history.mailbox, max(history.number) AS version,
                sum(CASE WHEN history.changed_marks & 1 = 0 THEN 0 WHEN history.seen THEN -1 ELSE 1 END) AS unseen
            FROM history WHERE history.number > base AND history.number <= last GROUP BY history.mailbox
        ) AS changed
        WHERE mailboxes.name = changed.mailbox;
        UPDATE state SET last_change = last;
        RETURN QUERY SELECT * FROM history_between(base, last);
    END IF;
END $$;

-- Returns the changes after a number, in order. Stored copies are rows whose `deleted` is null. Copies that were stored
-- and deleted come from `history`. They have the marks with which they were stored, but the latest tags.
CREATE FUNCTION changes_after(after bigint, max_changes bigint) RETURNS SETOF copy_change LANGUAGE sql STABLE AS $$
    SELECT * FROM (
        (SELECT id, NULL::boolean, NULL::smallint, id, mailbox, received, size, stored_marks >= 128,
                (stored_marks & 127)::smallint, id, headline, message, number, tags, details, NULL::bigint[]
            FROM copies WHERE id > after ORDER BY id LIMIT max_changes)
        UNION ALL
        (SELECT id, NULL::boolean, NULL::smallint, id, mailbox, received, size, stored_marks >= 128,
                (stored_marks & 127)::smallint, id, headline, message, copy_number, tags, details, NULL::bigint[]
            FROM history WHERE deleted AND id > after ORDER BY id LIMIT max_changes)
        UNION ALL
        (SELECT number, deleted, changed_marks, id, mailbox, received, size, seen, flags, modseq, headline, message, copy_number,
                tags, details, NULL::bigint[]
            FROM history WHERE number > after ORDER BY number LIMIT max_changes)
    ) AS change (
        number, deleted, changed_marks, id, mailbox, received, size, seen, flags, modseq, headline, message, copy_number, tags,
        details, copy_numbers
    )
    ORDER BY number LIMIT max_changes
$$;

-- Deletes rows of `history` that are older than `age`, at most `max_rows`. Returns their number.
CREATE FUNCTION trim_history(age interval, max_rows bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    trimmed bigint;
    highest bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock('history'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM history WHERE history.number IN (
            SELECT first.number
            FROM (SELECT history.number, history.at FROM history ORDER BY history.number LIMIT max_rows) AS first
            WHERE first.at < now() - age
        ) RETURNING history.number
    )
    SELECT count(*), max(gone.number) INTO trimmed, highest FROM gone;
    IF trimmed > 0 THEN
        UPDATE state SET last_trimmed = greatest(state.last_trimmed, highest);
    END IF;
    RETURN trimmed;
END $$;

-- Fails if a message could not be stored now.
CREATE FUNCTION check_append() RETURNS void LANGUAGE plpgsql SET lock_timeout TO '1s' AS $$
BEGIN
    PERFORM FROM state FOR UPDATE;
    INSERT INTO bodies (id, bytes) VALUES (0, convert_to(repeat('x', 65536), 'UTF8'));
    DELETE FROM bodies WHERE bodies.id = 0;
END $$;
