//! The commands that talk to a server: they list, wait for, search and delete mail, and send some.
