-- All changes. Each is one function, so that a change is one statement: no transaction waits for a node that crashed in
-- the middle of it. All functions return rows of the same type. The first row contains the number of the last change
-- before; the others are described at each function.
--
-- Nodes of the previous version may run while these are installed. So a function never changes its meaning, only its
-- name.

-- Returns the number after which a change that is made now is numbered.
CREATE FUNCTION present(clock bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT greatest(clock, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- Returns the rows of `past` with numbers after `after`, up to `last`.
CREATE FUNCTION told(after bigint, last bigint) RETURNS SETOF change LANGUAGE sql STABLE AS $$
    SELECT number, deleted, id, mailbox, received, size, seen, headline, NULL::bigint[]
    FROM past WHERE number > after AND number <= last ORDER BY number
$$;

-- Removes messages, in this order, as the changes that follow the number `last`. The caller has locked `state`. Returns
-- the removed messages, without a first row.
CREATE FUNCTION forget(victims bigint[], last bigint) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    final CONSTANT bigint := last + cardinality(victims);
    gone_copies bigint;
    gone_mailboxes bigint;
    gone_bytes bigint;
    shared_bodies bigint[];
    names bytea[];
BEGIN
    WITH gone AS (
        DELETE FROM copies WHERE copies.id = ANY (victims) RETURNING copies.*
    ), told AS (
        INSERT INTO past (number, deleted, id, mailbox, received, size, seen, headline)
        SELECT last + place, true, gone.id, gone.mailbox, gone.received, gone.size, gone.seen, gone.headline
        FROM unnest(victims) WITH ORDINALITY AS victim (id, place) JOIN gone USING (id)
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
    SELECT count(*), coalesce(sum(CASE WHEN gone.shared THEN length(gone.trace) ELSE gone.size END), 0),
        array_agg(DISTINCT gone.body) FILTER (WHERE gone.shared), array_agg(DISTINCT gone.mailbox)
    INTO gone_copies, gone_bytes, shared_bodies, names
    FROM gone;
    IF shared_bodies IS NOT NULL THEN
        WITH freed AS (
            DELETE FROM bodies
            WHERE bodies.id = ANY (shared_bodies)
                AND NOT EXISTS (SELECT FROM copies WHERE copies.body = bodies.id AND copies.shared)
            RETURNING length(bodies.bytes) AS bytes
        )
        SELECT gone_bytes + coalesce(sum(freed.bytes), 0) INTO gone_bytes FROM freed;
    END IF;
    DELETE FROM mailboxes WHERE mailboxes.name = ANY (names) AND mailboxes.messages = 0;
    GET DIAGNOSTICS gone_mailboxes = ROW_COUNT;
    UPDATE state
    SET clock = final, messages = state.messages - gone_copies, mailboxes = state.mailboxes - gone_mailboxes,
        bytes = state.bytes - gone_bytes;
    RETURN QUERY SELECT * FROM told(last, final);
END $$;

-- Removes messages as a change of its own, made now. Returns the first row, then the removed messages.
CREATE FUNCTION forget_now(victims bigint[], before bigint) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    answer change;
BEGIN
    answer.number := before;
    RETURN NEXT answer;
    IF cardinality(victims) > 0 THEN
        RETURN QUERY SELECT * FROM forget(victims, present(before));
    END IF;
END $$;

-- Adds messages. Each has one position in the first arrays, counted from 1; each copy refers to the position of its
-- message. Returns the ids of the copies in the first row, in their order, and then the evicted messages. After a limit
-- was lowered, many messages have to be evicted. Other changes wait for this one, so the rest is evicted with the next
-- messages. Values that can be computed from the messages are passed in (`lengths`, `shared`, `new_bytes`), because
-- reading the messages again would cost more than everything else here.
CREATE FUNCTION append(
    mails bytea[], lengths bigint[], shared boolean[], received bigint[], headlines bytea[],
    places int[], names bytea[], traces bytea[], new_bytes bigint, cap bigint, bound bigint
) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    first_body CONSTANT bigint := nextval('body_numbers');
    most CONSTANT bigint := 1000;
    answer change;
    before bigint;
    last bigint;
    new_mailboxes bigint;
    crowded bytea[];
    victims bigint[];
    first bigint;
    excess_at_first bigint;
    excess bigint;
BEGIN
    -- What takes longest comes before the lock.
    INSERT INTO bodies
    SELECT first_body + mail.place, mail.bytes FROM unnest(mails) WITH ORDINALITY AS mail (bytes, place);
    SELECT state.clock INTO before FROM state FOR UPDATE;
    answer.number := before;
    WITH stored AS (
        INSERT INTO copies (id, received, size, body, shared, seen, mailbox, headline, trace)
        SELECT copy.number + greatest(before, max(mail.received / 1000 - copy.number) OVER (ORDER BY copy.number)),
            mail.received, length(copy.trace) + mail.length, first_body + mail.place, mail.shared, false,
            copy.mailbox, mail.headline, copy.trace
        FROM unnest(places, names, traces) WITH ORDINALITY AS copy (place, mailbox, trace, number)
        JOIN unnest(lengths, shared, received, headlines) WITH ORDINALITY
            AS mail (length, shared, received, headline, place) ON mail.place = copy.place
        RETURNING copies.id, copies.mailbox, copies.size
    ), added AS (
        SELECT stored.mailbox, count(*) AS messages, sum(stored.size)::bigint AS bytes, max(stored.id) AS version
        FROM stored GROUP BY stored.mailbox
    ), held AS (
        UPDATE mailboxes
        SET messages = mailboxes.messages + added.messages, unseen = mailboxes.unseen + added.messages,
            bytes = mailboxes.bytes + added.bytes, version = added.version
        FROM added WHERE mailboxes.name = added.mailbox
        RETURNING mailboxes.name, mailboxes.messages
    ), new AS (
        INSERT INTO mailboxes (name, messages, unseen, bytes, version)
        SELECT added.mailbox, added.messages, added.messages, added.bytes, added.version
        FROM added WHERE NOT EXISTS (SELECT FROM held WHERE held.name = added.mailbox)
        RETURNING mailboxes.name, mailboxes.messages
    )
    SELECT (SELECT array_agg(stored.id ORDER BY stored.id) FROM stored), (SELECT count(*) FROM new),
        (SELECT array_agg(held.name) FROM (SELECT * FROM held UNION ALL SELECT * FROM new) AS held WHERE cap > 0 AND held.messages > cap)
    INTO answer.ids, new_mailboxes, crowded;
    last := answer.ids[cardinality(answer.ids)];
    UPDATE state
    SET clock = last, last_id = last, messages = state.messages + cardinality(answer.ids),
        mailboxes = state.mailboxes + new_mailboxes, bytes = state.bytes + new_bytes;
    RETURN NEXT answer;

    IF crowded IS NOT NULL THEN
        victims := ARRAY(
            SELECT first.id
            FROM mailboxes, LATERAL (
                SELECT copies.id FROM copies WHERE copies.mailbox = mailboxes.name ORDER BY copies.id LIMIT mailboxes.messages - cap
            ) AS first
            WHERE mailboxes.name = ANY (crowded)
            ORDER BY first.id LIMIT greatest(most, cardinality(answer.ids))
        );
        RETURN QUERY SELECT * FROM forget(victims, last);
        last := last + cardinality(victims);
    END IF;

    first := last;
    WHILE bound > 0 LOOP
        SELECT state.bytes - bound INTO excess FROM state;
        EXIT WHEN excess <= 0;
        -- However much is to go, the store does not grow.
        excess_at_first := coalesce(excess_at_first, excess);
        EXIT WHEN last - first >= most AND excess_at_first - excess >= new_bytes;
        -- What a copy frees is known unless its body is shared; such a one is the last of its step.
        victims := ARRAY(
            SELECT oldest.id
            FROM (
                SELECT copies.received, copies.id,
                    sum(copies.size) OVER before_it AS freed, bool_or(copies.shared) OVER before_it AS is_open
                FROM (SELECT * FROM copies ORDER BY copies.received, copies.id LIMIT 100) AS copies
                WINDOW before_it AS (ORDER BY copies.received, copies.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            ) AS oldest
            WHERE coalesce(oldest.freed, 0) < excess AND NOT coalesce(oldest.is_open, false)
            ORDER BY oldest.received, oldest.id
        );
        EXIT WHEN cardinality(victims) = 0;
        RETURN QUERY SELECT * FROM forget(victims, last);
        last := last + cardinality(victims);
    END LOOP;
END $$;

-- Removes messages. Returns those that existed.
CREATE FUNCTION remove(names bytea[], ids bigint[]) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    victims bigint[];
BEGIN
    SELECT state.clock INTO before FROM state FOR UPDATE;
    victims := ARRAY(
        SELECT DISTINCT copies.id FROM unnest(names, ids) AS wanted (name, id)
        JOIN copies ON copies.id = wanted.id AND copies.mailbox = wanted.name
        ORDER BY copies.id
    );
    RETURN QUERY SELECT * FROM forget_now(victims, before);
END $$;

-- Removes the first messages of a mailbox. Returns them.
CREATE FUNCTION purge(name bytea, last bigint, most bigint) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    victims bigint[];
BEGIN
    SELECT state.clock INTO before FROM state FOR UPDATE;
    victims := ARRAY(SELECT copies.id FROM copies WHERE copies.mailbox = name AND copies.id <= last ORDER BY copies.id LIMIT most);
    RETURN QUERY SELECT * FROM forget_now(victims, before);
END $$;

-- Removes the oldest messages, unless another node is doing so. Returns them, or no rows at all.
CREATE FUNCTION expire(deadline bigint, most bigint) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    victims bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM copies WHERE copies.received < deadline)
        OR NOT pg_try_advisory_xact_lock('state'::regclass::oid::bigint) THEN
        RETURN;
    END IF;
    SELECT state.clock INTO before FROM state FOR UPDATE;
    victims := ARRAY(
        SELECT copies.id FROM copies WHERE copies.received < deadline ORDER BY copies.received, copies.id LIMIT most
    );
    RETURN QUERY SELECT * FROM forget_now(victims, before);
END $$;

-- Marks messages as read or unread. Returns those that exist. Only those that were changed have a number.
CREATE FUNCTION mark(names bytea[], ids bigint[], wishes boolean[]) RETURNS SETOF change LANGUAGE plpgsql AS $$
DECLARE
    answer change;
    before bigint;
    base bigint;
    changes bigint;
BEGIN
    SELECT state.clock INTO before FROM state FOR UPDATE;
    base := present(before);
    answer.number := before;
    RETURN NEXT answer;
    answer.number := NULL;
    FOR answer.id, answer.mailbox IN
        SELECT DISTINCT copies.id, copies.mailbox
        FROM unnest(names, ids) AS wanted (name, id) JOIN copies ON copies.id = wanted.id AND copies.mailbox = wanted.name
    LOOP
        RETURN NEXT answer;
    END LOOP;
    -- Of several wishes for one message the last one counts.
    WITH wish AS (
        SELECT DISTINCT ON (wanted.name, wanted.id) wanted.name, wanted.id, wanted.seen
        FROM unnest(names, ids, wishes) WITH ORDINALITY AS wanted (name, id, seen, place)
        ORDER BY wanted.name, wanted.id, wanted.place DESC
    ), marked AS (
        UPDATE copies SET seen = wish.seen FROM wish
        WHERE copies.id = wish.id AND copies.mailbox = wish.name AND copies.seen <> wish.seen
        RETURNING copies.id, copies.mailbox, copies.seen
    ), numbered AS (
        SELECT base + row_number() OVER (ORDER BY marked.id) AS number, marked.* FROM marked
    ), told AS (
        INSERT INTO past (number, deleted, id, mailbox, seen)
        SELECT numbered.number, false, numbered.id, numbered.mailbox, numbered.seen FROM numbered
    ), counted AS (
        UPDATE mailboxes SET unseen = mailboxes.unseen + more.unseen, version = more.version
        FROM (
            SELECT numbered.mailbox, sum(CASE WHEN numbered.seen THEN -1 ELSE 1 END) AS unseen, max(numbered.number) AS version
            FROM numbered GROUP BY numbered.mailbox
        ) AS more
        WHERE mailboxes.name = more.mailbox
    )
    SELECT count(*) INTO changes FROM numbered;
    IF changes > 0 THEN
        UPDATE state SET clock = base + changes;
        RETURN QUERY SELECT * FROM told(base, base + changes);
    END IF;
END $$;

-- Returns the changes after a number, in order. Stored messages are rows whose `deleted` is null. Messages that were
-- stored and deleted come from `past`, as they were when they were deleted.
CREATE FUNCTION changes(after bigint, most bigint) RETURNS SETOF change LANGUAGE sql STABLE AS $$
    SELECT * FROM (
        (SELECT id, NULL::boolean, id, mailbox, received, size, false AS seen, headline, NULL::bigint[]
            FROM copies WHERE id > after ORDER BY id LIMIT most)
        UNION ALL
        (SELECT id, NULL::boolean, id, mailbox, received, size, false, headline, NULL::bigint[]
            FROM past WHERE deleted AND id > after ORDER BY id LIMIT most)
        UNION ALL
        (SELECT number, deleted, id, mailbox, received, size, seen, headline, NULL::bigint[]
            FROM past WHERE number > after ORDER BY number LIMIT most)
    ) AS change (number, deleted, id, mailbox, received, size, seen, headline, ids)
    ORDER BY number LIMIT most
$$;

-- Deletes rows of `past` that are older than `age`, at most `most`. Returns their number.
CREATE FUNCTION tidy(age interval, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    tidied bigint;
    highest bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock('past'::regclass::oid::bigint) THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM past WHERE past.number IN (
            SELECT first.number
            FROM (SELECT past.number, past.at FROM past ORDER BY past.number LIMIT most) AS first
            WHERE first.at < now() - age
        ) RETURNING past.number
    )
    SELECT count(*), max(gone.number) INTO tidied, highest FROM gone;
    IF tidied > 0 THEN
        UPDATE state SET forgotten = greatest(state.forgotten, highest);
    END IF;
    RETURN tidied;
END $$;

-- Fails if a message could not be stored now.
CREATE FUNCTION probe() RETURNS void LANGUAGE plpgsql SET lock_timeout TO '1s' AS $$
BEGIN
    PERFORM FROM state FOR UPDATE;
    INSERT INTO bodies (id, bytes) VALUES (0, convert_to(repeat('x', 65536), 'UTF8'));
    DELETE FROM bodies WHERE bodies.id = 0;
END $$;
