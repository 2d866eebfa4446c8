    -- Counters of the whole store, in one row.
    CREATE TABLE state (
        single INTEGER PRIMARY KEY CHECK (single = 1),
        last_id INTEGER NOT NULL,             -- the highest id ever given
        last_version INTEGER NOT NULL,        -- the highest version of a mailbox ever given
        messages INTEGER NOT NULL,            -- messages, counted once
        copies INTEGER NOT NULL,              -- rows of copies
        mailboxes INTEGER NOT NULL,           -- rows of mailboxes
        bytes INTEGER NOT NULL,               -- traces, and bodies counted once
        highest_free_number INTEGER NOT NULL, -- the highest number of a copy in mailboxes that are empty now
        uid_validity INTEGER NOT NULL         -- identifies the numbers of copies; the Unix time of creation
    ) STRICT;
    INSERT INTO state VALUES (1, 0, 0, 0, 0, 0, 0, 0, CAST(strftime('%s', 'now') AS INTEGER));

    -- Mailboxes that are not empty.
    CREATE TABLE mailboxes (
        name TEXT PRIMARY KEY,
        messages INTEGER NOT NULL,
        version INTEGER NOT NULL,
        unseen INTEGER NOT NULL,         -- not marked as read
        bytes INTEGER NOT NULL,          -- the sizes of all copies
        last_number INTEGER NOT NULL     -- of the last copy
    ) STRICT, WITHOUT ROWID;

    -- One row per message and mailbox. The key keeps the messages of a mailbox together, so that a list reads few pages. The
    -- long texts are the last columns, so that the index of a mailbox does not read them.
    CREATE TABLE copies (
        mailbox TEXT NOT NULL,
        id INTEGER NOT NULL,
        received INTEGER NOT NULL,       -- Unix nanoseconds
        seen INTEGER NOT NULL,
        flags INTEGER NOT NULL,          -- one bit per flag
        modseq INTEGER NOT NULL,         -- the version of the mailbox after the last change of seen, flags or tags
        size INTEGER NOT NULL,           -- of trace and body
        body INTEGER NOT NULL,           -- of the body
        segment INTEGER NOT NULL,        -- where the record is
        offset INTEGER NOT NULL,
        length INTEGER NOT NULL,
        shared INTEGER NOT NULL,         -- whether the record has other copies too: see the table of that name
        message INTEGER NOT NULL,        -- the id of the first copy of the message
        number INTEGER NOT NULL,         -- ascending in the mailbox, never reused
        tags TEXT NOT NULL,              -- each ends in a line feed
        project TEXT,                    -- of the mailbox, if it is in one
        sender TEXT NOT NULL,
        recipients TEXT NOT NULL,        -- each ends in a line feed
        subject TEXT NOT NULL,
        details TEXT NOT NULL,           -- the envelope and a preview, one value per line
        PRIMARY KEY (mailbox, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX arrivals ON copies (received, id);
    CREATE INDEX copies_by_id ON copies (id);
    CREATE INDEX copies_by_project ON copies (project, id) WHERE project IS NOT NULL;
    -- For the overview. They contain no plain message with one copy, so they rarely cost anything. They have the columns of
    -- their conditions, because a query would read the table for these otherwise.
    CREATE INDEX unread_shared ON copies (message, shared, seen) WHERE shared AND NOT seen;
    CREATE INDEX tagged ON copies (tags, shared) WHERE tags <> '' AND NOT shared;
    CREATE INDEX tagged_shared ON copies (message, tags, shared) WHERE tags <> '' AND shared;
    CREATE INDEX shared_in_project ON copies (project, message, shared, seen) WHERE project IS NOT NULL AND shared;
    CREATE INDEX tagged_in_project ON copies (project, message, tags) WHERE project IS NOT NULL AND tags <> '';

    -- The number of copies that still refer to a record which was stored for several mailboxes.
    CREATE TABLE shared (
        segment INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        copies INTEGER NOT NULL,
        PRIMARY KEY (segment, offset)
    ) STRICT, WITHOUT ROWID;

    -- Segment files: the length of the written part, and the number of bytes in use.
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY,
        end INTEGER NOT NULL,
        live INTEGER NOT NULL
    ) STRICT;
