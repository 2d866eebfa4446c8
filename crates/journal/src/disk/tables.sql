    CREATE TABLE chunks (
        position INTEGER PRIMARY KEY,    -- ascends in the order in which chunks are written
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,             -- Unix microseconds
        bytes INTEGER NOT NULL,          -- its size for the limit
        incarnation INTEGER NOT NULL,    -- of the process that runs the session
        refused INTEGER NOT NULL,        -- whether something was refused in the session so far
        head BLOB NOT NULL,              -- JSON: the properties of the session, and the message that ends here
        lines BLOB NOT NULL,
        UNIQUE (session, number)
    ) STRICT;
    CREATE INDEX refused_chunks ON chunks (session) WHERE refused;

    -- The chunk that received a message.
    CREATE TABLE messages (
        mailbox TEXT NOT NULL,
        id INTEGER NOT NULL,
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (mailbox, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX messages_by_chunk ON messages (session, number);

    -- Every process that opens the file has a number. Sessions of earlier ones are over.
    CREATE TABLE state (incarnation INTEGER NOT NULL) STRICT;
    INSERT INTO state VALUES (0);
