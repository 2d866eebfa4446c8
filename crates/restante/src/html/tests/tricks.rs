//! Tricks that once ran a script through somebody's filter.
