//! What hostile mail costs: each family of it stays as small as it was, give or take a few escapes.
