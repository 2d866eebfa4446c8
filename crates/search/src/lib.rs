//! The language of searches, and the index that answers them.
