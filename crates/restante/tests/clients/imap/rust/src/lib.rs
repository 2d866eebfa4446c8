//! No code: the tests are in `tests/`.
