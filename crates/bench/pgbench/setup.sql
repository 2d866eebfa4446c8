-- Creates the schema of one partition, with the tables and functions of a node:
--   psql -v partition=0 -f setup.sql
SELECT 'restante_order_' || :partition AS schema \gset
SET client_min_messages TO warning;
DROP SCHEMA IF EXISTS :schema CASCADE;
CREATE SCHEMA :schema;
SET search_path TO :schema;
\ir ../../store/src/postgres/tables.sql
\ir ../../store/src/postgres/functions.sql

-- Stores messages of 1 KiB in different mailboxes of 1,000, as a node does in one statement.
CREATE FUNCTION append_batch(messages int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now CONSTANT bigint := extract(epoch FROM clock_timestamp()) * 1000000;
    first_mailbox CONSTANT int := random() * 1000;
    indexes CONSTANT int[] := ARRAY(SELECT generate_series(1, messages));
    times CONSTANT bigint[] := ARRAY(SELECT now + generate_series(1, messages));
    sizes CONSTANT bigint[] := array_fill(1163::bigint, ARRAY[messages]);
    texts CONSTANT bytea[] := array_fill(decode(repeat('78', 82), 'hex'), ARRAY[messages]);
BEGIN
    PERFORM FROM append_messages(
        new_bodies => array_fill(decode(repeat('78', 1024), 'hex'), ARRAY[messages]),
        shared => array_fill(false, ARRAY[messages]),
        received => ARRAY(SELECT 1000 * unnest(times)),
        headlines => texts,
        copy_messages => indexes,
        message_indexes => array_fill(0, ARRAY[messages]),
        copy_mailboxes => indexes,
        mailbox_indexes => array_fill(1, ARRAY[messages]),
        lowest_ids => times,
        sizes => sizes,
        traces => array_fill(decode(repeat('78', 139), 'hex'), ARRAY[messages]),
        tags => array_fill(''::bytea, ARRAY[messages]),
        details => array_fill(decode(repeat('78', 308), 'hex'), ARRAY[messages]),
        names => ARRAY(SELECT ('bench-' || (first_mailbox + index) % 1000)::bytea FROM generate_series(1, messages) AS index),
        name_copies => array_fill(1::bigint, ARRAY[messages]),
        name_bytes => sizes,
        last_copies => indexes,
        new_bytes => 1163 * messages,
        cap => 0,
        max_bytes => 0
    );
END $$;
ALTER FUNCTION append_batch SET search_path TO :schema;
ALTER FUNCTION append_batch SET enable_seqscan TO off;
ALTER FUNCTION append_batch SET enable_bitmapscan TO off;
ALTER FUNCTION append_batch SET jit TO off;
ALTER FUNCTION append_batch SET plan_cache_mode TO force_generic_plan;
