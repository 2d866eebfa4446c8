//! The HTML check: which features of HTML and CSS a message uses, where, and which mail clients support them. Pure
//! functions; nothing is loaded from the network. Time and memory are bounded for every input.
//!
//! - `table`: the features and their support in clients, from `data/features.tsv`, which the example `update` makes from the
//!   data of caniemail
//! - `document`: the tree of elements; `element_names`: kinds of elements
//! - `stylesheet`, `selector`: rules and the elements to which they apply
//! - `detect`, `rules`: which construct is a use of which feature
//! - `limits`: limits on time and memory
//! - `check`: counts the uses; `report`: the result and its scores

mod check;
// The tests of this module of the example `update` run with those of the crate.
#[cfg(test)]
#[path = "../examples/update/convert.rs"]
mod convert;
mod detect;
mod document;
mod element_names;
mod limits;
mod lines;
mod report;
mod rules;
mod selector;
mod stylesheet;
mod table;
#[cfg(test)]
mod tests;

pub use check::check;
pub use report::{ClientSummary, Report, Score, Usage};
pub use table::{Client, Feature, Support, Version, family_name, features, platform_name, table_date};
