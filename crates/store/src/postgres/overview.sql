-- Indexes of version 4, for the overview. They contain no plain message with one copy, so they rarely cost anything.
CREATE INDEX copies_unread_shared ON copies (body) WHERE shared AND NOT seen;
CREATE INDEX copies_tagged ON copies (tags) WHERE tags <> '' AND NOT shared;
CREATE INDEX copies_tagged_shared ON copies (body, tags) WHERE tags <> '' AND shared;
