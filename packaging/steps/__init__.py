"""The steps of packaging/release. Each has `build(release)`, which returns the files that it made."""
