//! The names of elements that the HTML standard treats alike when a tree is built.

/// Returns whether the element belongs into the head if the body has not begun.
pub(crate) fn is_metadata(name: &str) -> bool {
    matches!(
        name,
        "base" | "basefont" | "bgsound" | "link" | "meta" | "noscript" | "script" | "style" | "template" | "title"
    )
}

/// Returns whether the element has no content and no end tag.
pub(crate) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Returns whether the element exists only inside of a table.
pub(crate) fn is_table_part(name: &str) -> bool {
    matches!(name, "caption" | "col" | "colgroup" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr")
}

/// Returns whether end tags inside of the element do not close elements around it.
pub(crate) fn is_scope(name: &str) -> bool {
    matches!(name, "applet" | "caption" | "marquee" | "object" | "table" | "td" | "template" | "th")
}

/// Returns whether the start tag of the element ends an open paragraph.
pub(crate) fn closes_paragraph(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "li"
            | "listing"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "plaintext"
            | "pre"
            | "search"
            | "section"
            | "summary"
            | "table"
            | "ul"
            | "xmp"
    )
}
