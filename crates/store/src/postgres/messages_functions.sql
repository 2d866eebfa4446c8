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

-- Adds messages. There are three groups of arrays, whose elements are counted from 1: messages (`new_bodies` to
-- `headlines`), copies (`copy_messages` to `details`) and mailboxes (`names` to `last_copies`). A copy refers to its
-- message and its mailbox, and has an index among the copies of each of them: from 0 in the message, from 1 in the mailbox.
-- The ids of the copies ascend, and each is at least its `lowest_ids`. The last copy of each mailbox is in `last_copies`.
-- Returns in the first row the ids of the copies, and for each mailbox the number before those of its copies. Then returns
-- the evicted copies. After a limit was lowered, many copies have to be evicted. Other changes wait for this one, so the
-- rest is evicted with the next messages. Everything that can be computed from the messages is passed in, because that
-- costs less, and elements are read by their index, because joins of wide rows cost more.
CREATE FUNCTION append_messages(
    new_bodies bytea[], shared boolean[], received bigint[], headlines bytea[],
    copy_messages int[], message_indexes int[], copy_mailboxes int[], mailbox_indexes int[], lowest_ids bigint[], sizes bigint[],
    traces bytea[], tags bytea[], details bytea[],
    names bytea[], name_copies bigint[], name_bytes bigint[], last_copies int[],
    new_bytes bigint, cap bigint, max_bytes bigint
) RETURNS SETOF copy_change LANGUAGE plpgsql AS $$
DECLARE
    copies_count CONSTANT int := cardinality(copy_messages);
    first_body CONSTANT bigint := nextval('body_numbers');
    max_evicted CONSTANT bigint := 1000;
    result copy_change;
    before bigint;
    free_number bigint;
    numbers bigint[];
    last bigint;
    new_mailboxes bigint;
    full_mailboxes bytea[];
    evicted_ids bigint[];
    first bigint;
    first_excess bigint;
    excess bigint;
BEGIN
    -- What takes longest comes before the lock.
    INSERT INTO bodies SELECT first_body + index, new_bodies[index] FROM generate_series(1, cardinality(new_bodies)) AS index;
    SELECT state.clock, state.highest_free_number INTO before, free_number FROM state FOR UPDATE;
    WITH existing AS (
        UPDATE mailboxes
        SET messages = mailboxes.messages + name_copies[added.index], unseen = mailboxes.unseen + name_copies[added.index],
            bytes = mailboxes.bytes + name_bytes[added.index], last_number = mailboxes.last_number + name_copies[added.index],
            version = greatest(before + last_copies[added.index], lowest_ids[last_copies[added.index]])
        FROM unnest(names) WITH ORDINALITY AS added (name, index) WHERE mailboxes.name = added.name
        RETURNING added.index, mailboxes.messages, mailboxes.last_number - name_copies[added.index] AS number
    )
    SELECT array_agg(coalesce(existing.number, free_number) ORDER BY added.index), count(*) FILTER (WHERE existing.index IS NULL),
        array_agg(added.name) FILTER (WHERE cap > 0 AND coalesce(existing.messages, name_copies[added.index]) > cap)
    INTO numbers, new_mailboxes, full_mailboxes
    FROM unnest(names) WITH ORDINALITY AS added (name, index) LEFT JOIN existing USING (index);
    IF new_mailboxes > 0 THEN
        INSERT INTO mailboxes (name, messages, unseen, bytes, version, last_number)
        SELECT added.name, name_copies[added.index], name_copies[added.index], name_bytes[added.index],
            greatest(before + last_copies[added.index], lowest_ids[last_copies[added.index]]),
            free_number + name_copies[added.index]
        FROM unnest(names) WITH ORDINALITY AS added (name, index)
        WHERE NOT EXISTS (SELECT FROM mailboxes WHERE mailboxes.name = added.name);
    END IF;
    INSERT INTO copies (id, received, size, body, shared, seen, mailbox, headline, trace, message, number, tags, details)
    SELECT greatest(before + index, lowest_ids[index]), received[copy_messages[index]], sizes[index],
        first_body + copy_messages[index], shared[copy_messages[index]], false, names[copy_mailboxes[index]],
        headlines[copy_messages[index]], traces[index], greatest(before + index, lowest_ids[index]) - message_indexes[index],
        numbers[copy_mailboxes[index]] + mailbox_indexes[index], tags[index], details[index]
    FROM generate_series(1, copies_count) AS index;
    last := greatest(before + copies_count, lowest_ids[copies_count]);
    UPDATE state
    SET clock = last, last_id = last, last_change = last, messages = state.messages + copies_count,
        extra_copies = state.extra_copies + copies_count - cardinality(new_bodies),
        mailboxes = state.mailboxes + new_mailboxes, bytes = state.bytes + new_bytes;
    result.number := before;
    result.ids := ARRAY(SELECT greatest(before + index, lowest_ids[index]) FROM generate_series(1, copies_count) AS index);
    result.copy_numbers := numbers;
    RETURN NEXT result;

    IF full_mailboxes IS NOT NULL THEN
        evicted_ids := ARRAY(
            SELECT first.id
            FROM mailboxes, LATERAL (
                SELECT copies.id FROM copies WHERE copies.mailbox = mailboxes.name ORDER BY copies.id LIMIT mailboxes.messages - cap
            ) AS first
            WHERE mailboxes.name = ANY (full_mailboxes)
            ORDER BY first.id LIMIT greatest(max_evicted, copies_count)
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
-- `before`, or below the message that contains `before`. Of these, the first `max_messages`, or the last ones.
CREATE FUNCTION page_of_messages(
    after bigint, before bigint, max_messages bigint, is_first boolean, OUT lowest bigint, OUT highest bigint
) LANGUAGE plpgsql STABLE AS $$
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
    copy record;
    mailbox record;
BEGIN
    SELECT array_agg(given.message_index ORDER BY given.index) AS message_indexes,
        array_agg(given.mailbox ORDER BY given.index) AS mailboxes,
        array_agg(given.mailbox_index ORDER BY given.index) AS mailbox_indexes,
        array_agg(given.lowest_id ORDER BY given.index) AS lowest_ids,
        array_agg(length(traces[given.index]) + lengths[places[given.index]] ORDER BY given.index) AS sizes
    INTO copy
    FROM (
        SELECT index, (row_number() OVER (PARTITION BY places[index] ORDER BY index) - 1)::int AS message_index,
            (dense_rank() OVER (ORDER BY names[index]))::int AS mailbox,
            (row_number() OVER (PARTITION BY names[index] ORDER BY index))::int AS mailbox_index,
            index + max(received[places[index]] / 1000 - index) OVER (ORDER BY index) AS lowest_id
        FROM generate_series(1, cardinality(names)) AS index
    ) AS given;
    SELECT array_agg(given.name ORDER BY given.mailbox) AS names, array_agg(given.copies ORDER BY given.mailbox) AS copies,
        array_agg(given.bytes ORDER BY given.mailbox) AS bytes, array_agg(given.last ORDER BY given.mailbox) AS last
    INTO mailbox
    FROM (
        SELECT copy.mailboxes[index] AS mailbox, names[index] AS name, count(*) AS copies, sum(copy.sizes[index])::bigint AS bytes,
            max(index) AS last
        FROM generate_series(1, cardinality(names)) AS index GROUP BY 1, 2
    ) AS given;
    RETURN QUERY SELECT change.number, change.deleted, change.id, change.mailbox, change.received, change.size, change.seen,
        change.headline, change.ids
    FROM append_messages(
        mails, shared, received, headlines,
        places, copy.message_indexes, copy.mailboxes, copy.mailbox_indexes, copy.lowest_ids, copy.sizes,
        traces, array_fill(''::bytea, ARRAY[cardinality(names)]), array_fill(NULL::bytea, ARRAY[cardinality(names)]),
        mailbox.names, mailbox.copies, mailbox.bytes, mailbox.last,
        new_bytes, cap, bound
    ) AS change;
    -- Their details are still missing.
    UPDATE state SET last_to_migrate = state.last_id;
END $$;
