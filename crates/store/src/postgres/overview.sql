-- Indexes of version 4, for the overview. They contain only messages with tags. The tags are not in the index: they can be
-- longer than a row of an index may be. There is no index for unread messages: marking a message as read would update all
-- indexes of the table then.
CREATE INDEX copies_tagged ON copies (id) WHERE tags <> '' AND NOT shared;
CREATE INDEX copies_tagged_shared ON copies (body) WHERE tags <> '' AND shared;
