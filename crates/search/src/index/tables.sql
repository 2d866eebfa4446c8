    -- The texts of messages are not stored.
    CREATE TABLE state (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        through INTEGER                  -- after a clean shutdown, the id up to which the index is complete
    ) STRICT;
    INSERT INTO state VALUES (1, NULL);
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,          -- the id of the message
        mailbox TEXT NOT NULL,
        delay INTEGER NOT NULL,          -- the id minus the time of arrival in Unix microseconds, which is mostly 0
        size INTEGER NOT NULL,
        seen INTEGER NOT NULL,
        modseq INTEGER NOT NULL,         -- the MODSEQ of the copy with these marks
        tags TEXT NOT NULL               -- lines: the tags
    ) STRICT;
    CREATE TABLE tags (
        tag TEXT NOT NULL,               -- in lower case
        id INTEGER NOT NULL,             -- the id of a message with this tag
        PRIMARY KEY (tag, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE partitions (
        first INTEGER PRIMARY KEY,       -- the lowest id; the range ends at the next partition
        number INTEGER NOT NULL,         -- the number that its tokens begin with
        last INTEGER NOT NULL,           -- the highest id that was added
        count INTEGER NOT NULL           -- the number of documents that were added
    ) STRICT;
    CREATE VIRTUAL TABLE words USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize='ascii');
    -- A part of the table is rewritten when half of its documents are deleted. The default, a tenth, takes 25 times the CPU
    -- time when many of the oldest messages expire, and seconds in one transaction.
    INSERT INTO words (words, rank) VALUES ('deletemerge', 50);
    CREATE VIRTUAL TABLE tokens USING fts5vocab(words, instance);
