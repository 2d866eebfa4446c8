//! The names of elements that the HTML standard treats alike when a tree is built.

use crate::rules::contains_word;

/// Returns whether the element belongs into the head if the body has not begun.
pub(crate) fn is_metadata(name: &str) -> bool {
    contains_word("base basefont bgsound link meta noscript script style template title", name)
}

/// Returns whether the element has no content and no end tag.
pub(crate) fn is_void(name: &str) -> bool {
    const NAMES: &str =
        "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr";
    contains_word(NAMES, name)
}

/// Returns whether the element exists only inside of a table.
pub(crate) fn is_table_part(name: &str) -> bool {
    contains_word("caption col colgroup tbody td tfoot th thead tr", name)
}

/// Returns whether end tags inside of the element do not close elements around it.
pub(crate) fn is_scope(name: &str) -> bool {
    contains_word("applet caption marquee object table td template th", name)
}

/// Returns whether the start tag of the element ends an open paragraph.
pub(crate) fn closes_paragraph(name: &str) -> bool {
    const NAMES: &str = "\
        address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure \
        footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search \
        section summary table ul xmp";
    contains_word(NAMES, name)
}
