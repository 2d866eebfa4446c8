    -- Groups of consecutive chunks of a session.
    CREATE TABLE chunk_groups (
        position INTEGER PRIMARY KEY,    -- ascends in the order in which groups are written
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,         -- of the first chunk
        at INTEGER NOT NULL,             -- of the last chunk, Unix microseconds
        bytes INTEGER NOT NULL,          -- its size for the limit
        incarnation INTEGER NOT NULL,    -- of the process that runs the session
        refused INTEGER NOT NULL,        -- whether something was refused in the session so far
        first_id INTEGER,                -- the lowest id of the messages that the chunks received
        last_id INTEGER,                 -- the highest
        info BLOB NOT NULL,              -- JSON: the properties of the session
        chunks BLOB NOT NULL,            -- JSON: the chunks without their lines
        lines BLOB NOT NULL,
        UNIQUE (session, number)
    ) STRICT;
    CREATE INDEX refused_groups ON chunk_groups (session) WHERE refused;
    CREATE INDEX groups_by_message ON chunk_groups (last_id) WHERE last_id IS NOT NULL;

    -- Every process that opens the file has a number. Sessions of earlier ones are over.
    CREATE TABLE state (incarnation INTEGER NOT NULL) STRICT;
    INSERT INTO state VALUES (0);
