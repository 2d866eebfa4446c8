-- The functions of version 3. As in version 2, each change is one function, and the first row of its result contains the
-- number of the last change before. At the end, the functions of version 2 get new bodies, so that their changes set the
-- new columns too.

-- Returns the id of the message of a copy that was not migrated yet: the one of other copies of its body, or the lowest
-- id of them.
CREATE FUNCTION message_of_copy(copy bigint, copy_body bigint, has_others boolean) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT has_others THEN
        RETURN copy;
    END IF;
    RETURN (
        SELECT coalesce(min(copies.message), min(copies.id)) FROM copies WHERE copies.body = copy_body AND copies.shared
    );
END $$;

-- Returns the rows of the history with numbers after `after`, up to `last`.
CREATE FUNCTION history(after bigint, last bigint) RETURNS SETOF copy_change LANGUAGE sql STABLE AS $$
    SELECT number, deleted, id, mailbox, received, size, seen, headline, message, copy_number, tags, details, NULL::bigint[], NULL::bigint[]
    FROM past WHERE number > after AND number <= last ORDER BY number
$$;

-- Deletes copies, in this order, as the changes that follow the number `last`. The caller has locked `state`. Returns the
-- deleted copies, without a first row.
CREATE FUNCTION delete_copies(deleted_ids bigint[], last bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    final CONSTANT bigint := last + cardinality(deleted_ids);
    deleted_copies bigint;
    deleted_extra_copies bigint;
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
        INSERT INTO past (number, deleted, id, mailbox, received, size, seen, headline, message, copy_number, tags, details)
        SELECT last + given.position, true, gone.id, gone.mailbox, gone.received, gone.size, gone.seen, gone.headline,
            coalesce(gone.message, message_of_copy(gone.id, gone.body, gone.shared)), gone.number, gone.tags, gone.details
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
    SELECT count(*), count(*) FILTER (WHERE gone.shared),
        coalesce(sum(CASE WHEN gone.shared THEN length(gone.trace) ELSE gone.size END), 0),
        array_agg(DISTINCT gone.body) FILTER (WHERE gone.shared), array_agg(DISTINCT gone.mailbox)
    INTO deleted_copies, deleted_extra_copies, deleted_bytes, shared_bodies, names
    FROM gone;
    IF shared_bodies IS NOT NULL THEN
        WITH freed AS (
            DELETE FROM bodies
            WHERE bodies.id = ANY (shared_bodies)
                AND NOT EXISTS (SELECT FROM copies WHERE copies.body = bodies.id AND copies.shared)
            RETURNING length(bodies.bytes) AS bytes
        )
        SELECT deleted_extra_copies - count(*), coalesce(sum(freed.bytes), 0) INTO deleted_extra_copies, shared_bytes FROM freed;
        deleted_bytes := deleted_bytes + shared_bytes;
    END IF;
    WITH emptied AS (
        DELETE FROM mailboxes WHERE mailboxes.name = ANY (names) AND mailboxes.messages = 0 RETURNING mailboxes.last_number
    )
    SELECT count(*), max(emptied.last_number) INTO deleted_mailboxes, free_number FROM emptied;
    UPDATE state
    SET clock = final, last_change = final, messages = state.messages - deleted_copies,
        extra_copies = state.extra_copies - deleted_extra_copies, mailboxes = state.mailboxes - deleted_mailboxes,
        bytes = state.bytes - deleted_bytes, highest_free_number = greatest(state.highest_free_number, free_number);
    RETURN QUERY SELECT * FROM history(last, final);
END $$;

-- Deletes copies as a change of its own, made now. Returns the first row, then the deleted copies.
CREATE FUNCTION delete_copies_now(deleted_ids bigint[], before bigint) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    result copy_change;
BEGIN
    result.number := before;
    RETURN NEXT result;
    IF cardinality(deleted_ids) > 0 THEN
        RETURN QUERY SELECT * FROM delete_copies(deleted_ids, present(before));
    END IF;
END $$;

-- Adds messages. Each message has one position in the arrays `new_bodies` to `tags`, counted from 1. Each copy has one in
-- `positions` to `details`: the position of its message, its index among the copies of the message, counted from 0, its
-- mailbox, and its index among the copies for that mailbox, counted from 1. Returns the ids and the numbers of the copies
-- in the first row, in their order, and then the evicted copies. After a limit was lowered, many copies have to be evicted.
-- Other changes wait for this one, so the rest is evicted with the next messages. Values that can be computed from the
-- messages are passed in (`lengths`, `shared`, `new_bytes` and the indexes), because that costs less.
CREATE FUNCTION append_messages(
    new_bodies bytea[], lengths bigint[], shared boolean[], received bigint[], headlines bytea[], tags bytea[],
    positions int[], message_indexes int[], names bytea[], mailbox_indexes int[], traces bytea[], details bytea[],
    new_bytes bigint, cap bigint, max_bytes bigint
) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    first_body CONSTANT bigint := nextval('body_numbers');
    max_evicted CONSTANT bigint := 1000;
    result copy_change;
    before bigint;
    free_number bigint;
    last bigint;
    new_mailboxes bigint;
    full_mailboxes bytea[];
    evicted_ids bigint[];
    first bigint;
    first_excess bigint;
    excess bigint;
BEGIN
    -- What takes longest comes before the lock.
    INSERT INTO bodies
    SELECT first_body + new.position, new.bytes FROM unnest(new_bodies) WITH ORDINALITY AS new (bytes, position);
    SELECT state.clock, state.highest_free_number INTO before, free_number FROM state FOR UPDATE;
    result.number := before;
    WITH given AS MATERIALIZED (
        SELECT copy.index + greatest(before, max(message.received / 1000 - copy.index) OVER (ORDER BY copy.index)) AS id,
            message.received, length(copy.trace) + message.length AS size, first_body + message.position AS body, message.shared,
            copy.mailbox, message.headline, copy.trace, copy.message_index, copy.mailbox_index, message.tags, copy.details
        FROM unnest(positions, message_indexes, names, mailbox_indexes, traces, details) WITH ORDINALITY
            AS copy (position, message_index, mailbox, mailbox_index, trace, details, index)
        JOIN unnest(lengths, shared, received, headlines, tags) WITH ORDINALITY
            AS message (length, shared, received, headline, tags, position) ON message.position = copy.position
    ), added AS (
        SELECT given.mailbox, count(*) AS messages, sum(given.size)::bigint AS bytes, max(given.id) AS version
        FROM given GROUP BY given.mailbox
    ), existing AS (
        UPDATE mailboxes
        SET messages = mailboxes.messages + added.messages, unseen = mailboxes.unseen + added.messages,
            bytes = mailboxes.bytes + added.bytes, version = added.version, last_number = mailboxes.last_number + added.messages
        FROM added WHERE mailboxes.name = added.mailbox
        RETURNING mailboxes.name, mailboxes.messages, mailboxes.last_number - added.messages AS number
    ), new AS (
        INSERT INTO mailboxes (name, messages, unseen, bytes, version, last_number)
        SELECT added.mailbox, added.messages, added.messages, added.bytes, added.version, free_number + added.messages
        FROM added WHERE NOT EXISTS (SELECT FROM existing WHERE existing.name = added.mailbox)
        RETURNING mailboxes.name, mailboxes.messages, free_number AS number
    ), changed AS (
        SELECT * FROM existing UNION ALL SELECT * FROM new
    ), stored AS (
        INSERT INTO copies (id, received, size, body, shared, seen, mailbox, headline, trace, message, number, tags, details)
        SELECT given.id, given.received, given.size, given.body, given.shared, false, given.mailbox, given.headline, given.trace,
            given.id - given.message_index, changed.number + given.mailbox_index, given.tags, given.details
        FROM given JOIN changed ON changed.name = given.mailbox
        RETURNING copies.id, copies.number
    )
    SELECT ids.ids, ids.numbers, (SELECT count(*) FROM new),
        (SELECT array_agg(changed.name) FROM changed WHERE cap > 0 AND changed.messages > cap)
    INTO result.ids, result.copy_numbers, new_mailboxes, full_mailboxes
    FROM (
        SELECT array_agg(stored.id ORDER BY stored.id) AS ids, array_agg(stored.number ORDER BY stored.id) AS numbers FROM stored
    ) AS ids;
    last := result.ids[cardinality(result.ids)];
    UPDATE state
    SET clock = last, last_id = last, last_change = last, messages = state.messages + cardinality(result.ids),
        extra_copies = state.extra_copies + cardinality(result.ids) - cardinality(lengths),
        mailboxes = state.mailboxes + new_mailboxes, bytes = state.bytes + new_bytes;
    RETURN NEXT result;

    IF full_mailboxes IS NOT NULL THEN
        evicted_ids := ARRAY(
            SELECT first.id
            FROM mailboxes, LATERAL (
                SELECT copies.id FROM copies WHERE copies.mailbox = mailboxes.name ORDER BY copies.id LIMIT mailboxes.messages - cap
            ) AS first
            WHERE mailboxes.name = ANY (full_mailboxes)
            ORDER BY first.id LIMIT greatest(max_evicted, cardinality(result.ids))
        );
        RETURN QUERY SELECT * FROM delete_copies(evicted_ids, last);
        last := last + cardinality(evicted_ids);
    END IF;

    first := last;
    WHILE max_bytes > 0 LOOP
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
    SELECT state.clock INTO before FROM state FOR UPDATE;
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
    SELECT state.clock INTO before FROM state FOR UPDATE;
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
    SELECT state.clock INTO before FROM state FOR UPDATE;
    oldest := ARRAY(
        SELECT copies.id FROM copies WHERE copies.received < deadline ORDER BY copies.received, copies.id LIMIT max_copies
    );
    RETURN QUERY SELECT * FROM delete_copies_now(oldest, before);
END $$;

-- Marks copies as read or unread. Returns those that exist. Only those that were changed have a number.
CREATE FUNCTION set_seen(names bytea[], ids bigint[], flags boolean[]) RETURNS SETOF copy_change LANGUAGE sql AS $$
    SELECT number, deleted, id, mailbox, received, size, seen, headline, NULL::bigint, NULL::bigint, NULL::bytea, NULL::bytea,
        NULL::bigint[], NULL::bigint[]
    FROM mark(names, ids, flags)
$$;

-- Sets the tags of copies. Returns those that exist. Only those that were changed have a number.
CREATE FUNCTION set_tags(names bytea[], ids bigint[], new_tags bytea[]) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    result copy_change;
    before bigint;
    base bigint;
    changes bigint;
BEGIN
    SELECT state.clock INTO before FROM state FOR UPDATE;
    base := present(before);
    result.number := before;
    RETURN NEXT result;
    result.number := NULL;
    FOR result.id, result.mailbox IN
        SELECT DISTINCT copies.id, copies.mailbox
        FROM unnest(names, ids) AS given (name, id) JOIN copies ON copies.id = given.id AND copies.mailbox = given.name
    LOOP
        RETURN NEXT result;
    END LOOP;
    -- If a copy is given several times, the last value counts.
    WITH wanted AS (
        SELECT DISTINCT ON (given.name, given.id) given.name, given.id, given.tags
        FROM unnest(names, ids, new_tags) WITH ORDINALITY AS given (name, id, tags, position)
        ORDER BY given.name, given.id, given.position DESC
    ), tagged AS (
        UPDATE copies SET tags = wanted.tags FROM wanted
        WHERE copies.id = wanted.id AND copies.mailbox = wanted.name AND coalesce(copies.tags, '') <> wanted.tags
        RETURNING copies.id, copies.mailbox, copies.seen, copies.tags
    ), numbered AS (
        SELECT base + row_number() OVER (ORDER BY tagged.id) AS number, tagged.* FROM tagged
    ), recorded AS (
        INSERT INTO past (number, deleted, id, mailbox, seen, tags)
        SELECT numbered.number, false, numbered.id, numbered.mailbox, numbered.seen, numbered.tags FROM numbered
    ), updated AS (
        UPDATE mailboxes SET version = changed.version
        FROM (SELECT numbered.mailbox, max(numbered.number) AS version FROM numbered GROUP BY numbered.mailbox) AS changed
        WHERE mailboxes.name = changed.mailbox
    )
    SELECT count(*) INTO changes FROM numbered;
    IF changes > 0 THEN
        UPDATE state SET clock = base + changes;
        RETURN QUERY SELECT * FROM history(base, base + changes);
    END IF;
END $$;

-- Returns the changes after a number, in order. Stored copies are rows whose `deleted` is null. Copies that were stored
-- and deleted come from `past`. Their tags are the latest ones.
CREATE FUNCTION changes_after(after bigint, max_changes bigint) RETURNS SETOF copy_change LANGUAGE sql STABLE AS $$
    SELECT * FROM (
        (SELECT id, NULL::boolean, id, mailbox, received, size, false AS seen, headline,
                coalesce(message, message_of_copy(id, body, shared)), number, tags, details, NULL::bigint[], NULL::bigint[]
            FROM copies WHERE id > after ORDER BY id LIMIT max_changes)
        UNION ALL
        (SELECT id, NULL::boolean, id, mailbox, received, size, false, headline, message, copy_number, tags, details,
                NULL::bigint[], NULL::bigint[]
            FROM past WHERE deleted AND id > after ORDER BY id LIMIT max_changes)
        UNION ALL
        (SELECT number, deleted, id, mailbox, received, size, seen, headline, message, copy_number, tags, details,
                NULL::bigint[], NULL::bigint[]
            FROM past WHERE number > after ORDER BY number LIMIT max_changes)
    ) AS change (number, deleted, id, mailbox, received, size, seen, headline, message, copy_number, tags, details, ids, copy_numbers)
    ORDER BY number LIMIT max_changes
$$;

-- Returns the lowest and the highest id of the copies of a page of messages: those with ids above `after` and below
-- `before`, or below the message that contains `before`. Of these, the first `max_messages`, or the last ones. The copies
-- are read in the order of the index until there are enough; the database must not read and sort all of them first.
CREATE FUNCTION page_of_messages(
    after bigint, before bigint, max_messages bigint, is_first boolean, OUT lowest bigint, OUT highest bigint
) LANGUAGE plpgsql STABLE SET enable_sort TO off SET enable_bitmapscan TO off AS $$
DECLARE
    copy record;
    upper bigint := coalesce(before, 9223372036854775807);
    last_message bigint;
    messages bigint := 0;
BEGIN
    FOR copy IN
        SELECT coalesce(copies.message, message_of_copy(copies.id, copies.body, copies.shared)) AS message
        FROM copies WHERE copies.id >= before ORDER BY copies.id LIMIT 1
    LOOP
        upper := least(upper, copy.message);
    END LOOP;
    IF max_messages IS NULL THEN
        lowest := after + 1;
        highest := upper - 1;
    ELSIF is_first THEN
        FOR copy IN
            SELECT copies.id, coalesce(copies.message, message_of_copy(copies.id, copies.body, copies.shared)) AS message
            FROM copies WHERE copies.id > after AND copies.id < upper ORDER BY copies.id
        LOOP
            -- Copies of the message at the start of the page can have higher ids than its start.
            CONTINUE WHEN copy.message <= after;
            IF copy.message IS DISTINCT FROM last_message THEN
                EXIT WHEN messages >= max_messages;
                messages := messages + 1;
                last_message := copy.message;
            END IF;
            lowest := coalesce(lowest, copy.id);
            highest := copy.id;
        END LOOP;
    ELSE
        FOR copy IN
            SELECT copies.id, coalesce(copies.message, message_of_copy(copies.id, copies.body, copies.shared)) AS message
            FROM copies WHERE copies.id < upper ORDER BY copies.id DESC
        LOOP
            IF copy.message IS DISTINCT FROM last_message THEN
                EXIT WHEN messages >= max_messages;
                messages := messages + 1;
                last_message := copy.message;
            END IF;
            highest := coalesce(highest, copy.id);
            lowest := copy.id;
        END LOOP;
    END IF;
END $$;

-- Sets the columns of copies that were stored by version 2, up to the id `last`. The migration has reached the id `first`;
-- otherwise nothing is changed, and this returns false. One mark with the current value is recorded, so that the new
-- versions of the mailboxes are the number of a change.
CREATE FUNCTION migrate_copies(first bigint, last bigint, ids bigint[], new_details bytea[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    final bigint;
BEGIN
    SELECT state.clock INTO before FROM state WHERE state.first_to_migrate = first FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    final := present(before) + 1;
    WITH given AS (
        SELECT copies.id, copies.mailbox, given.details, copies.number IS NULL AS is_new,
            coalesce(copies.message, message_of_copy(copies.id, copies.body, copies.shared)) AS message,
            coalesce(
                copies.number,
                mailboxes.last_migrated_number + row_number() OVER (PARTITION BY copies.mailbox, copies.number IS NULL ORDER BY copies.id)
            ) AS number
        FROM unnest(ids, new_details) AS given (id, details)
        JOIN copies ON copies.id = given.id JOIN mailboxes ON mailboxes.name = copies.mailbox
        WHERE copies.details IS NULL
    ), migrated AS (
        UPDATE copies SET message = given.message, number = given.number, tags = coalesce(copies.tags, ''), details = given.details
        FROM given WHERE copies.id = given.id
        RETURNING copies.id, copies.mailbox, copies.seen
    ), recorded AS (
        INSERT INTO past (number, deleted, id, mailbox, seen)
        SELECT final, false, migrated.id, migrated.mailbox, migrated.seen FROM migrated ORDER BY migrated.id DESC LIMIT 1
        RETURNING past.number
    ), updated AS (
        UPDATE mailboxes
        SET version = final, last_migrated_number = mailboxes.last_migrated_number + changed.copies
        FROM (
            SELECT given.mailbox, count(*) FILTER (WHERE given.is_new) AS copies FROM given GROUP BY given.mailbox
        ) AS changed
        WHERE mailboxes.name = changed.mailbox
    )
    UPDATE state SET first_to_migrate = last + 1, clock = coalesce((SELECT recorded.number FROM recorded), state.clock);
    RETURN true;
END $$;

-- The functions of version 2 with new bodies. Those that are missing here work as they are.

CREATE OR REPLACE FUNCTION forget(victims bigint[], last bigint) RETURNS SETOF change LANGUAGE sql AS $$
    SELECT number, deleted, id, mailbox, received, size, seen, headline, ids FROM delete_copies(victims, last)
$$;

CREATE OR REPLACE FUNCTION append(
    mails bytea[], lengths bigint[], shared boolean[], received bigint[], headlines bytea[],
    places int[], names bytea[], traces bytea[], new_bytes bigint, cap bigint, bound bigint
) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    message_indexes int[];
    mailbox_indexes int[];
BEGIN
    SELECT array_agg(indexed.message_index ORDER BY indexed.index), array_agg(indexed.mailbox_index ORDER BY indexed.index)
    INTO message_indexes, mailbox_indexes
    FROM (
        SELECT copy.index, (row_number() OVER (PARTITION BY copy.place ORDER BY copy.index) - 1)::int AS message_index,
            (row_number() OVER (PARTITION BY copy.mailbox ORDER BY copy.index))::int AS mailbox_index
        FROM unnest(places, names) WITH ORDINALITY AS copy (place, mailbox, index)
    ) AS indexed;
    RETURN QUERY SELECT change.number, change.deleted, change.id, change.mailbox, change.received, change.size, change.seen,
        change.headline, change.ids
    FROM append_messages(
        mails, lengths, shared, received, headlines, array_fill(''::bytea, ARRAY[cardinality(mails)]),
        places, message_indexes, names, mailbox_indexes, traces, array_fill(NULL::bytea, ARRAY[cardinality(names)]),
        new_bytes, cap, bound
    ) AS change;
    -- Their details are still missing.
    UPDATE state SET last_to_migrate = state.last_id;
END $$;
