//! Lists for the detection of features: those that are not the property or the element in their slug, and those that
//! Mailpit 1.30 detects too. The words of a list are separated by spaces.

/// Features that consist of several properties, or of one with another name.
pub(crate) const PROPERTY_GROUPS: &[(&str, &str)] = &[
    ("css-block-inline-size", "block-size inline-size"),
    ("css-border-inline-block-individual", "border-inline-start border-inline-end border-block-start border-block-end"),
    (
        "css-border-inline-block-longhand",
        "\
        border-inline-color border-inline-style border-inline-width border-block-color border-block-style \
        border-block-width",
    ),
    ("css-border-inline-block", "border-inline border-block"),
    (
        "css-border-radius-logical",
        "border-start-start-radius border-start-end-radius border-end-start-radius border-end-end-radius",
    ),
    (
        "css-column-layout-properties",
        "\
        columns column-fill column-rule column-rule-color column-rule-style column-rule-width column-span \
        column-width",
    ),
    ("css-gap", "gap column-gap row-gap"),
    ("css-grid-template", "grid-template grid-template-areas grid-template-columns grid-template-rows"),
    ("css-left-right-top-bottom", "left right top bottom"),
    ("css-list-style", "list-style"),
    ("css-margin", "margin margin-top margin-right margin-bottom margin-left"),
    ("css-margin-block-start-end", "margin-block-start margin-block-end"),
    ("css-margin-inline-block", "margin-inline margin-block"),
    ("css-margin-inline-start-end", "margin-inline-start margin-inline-end"),
    ("css-overflow", "overflow overflow-x overflow-y"),
    ("css-padding", "padding padding-top padding-right padding-bottom padding-left"),
    ("css-padding-block-start-end", "padding-block-start padding-block-end"),
    ("css-padding-inline-block", "padding-inline padding-block"),
    ("css-padding-inline-start-end", "padding-inline-start padding-inline-end"),
    ("css-scroll-snap", "scroll-snap-type scroll-snap-align scroll-snap-stop scroll-margin scroll-padding"),
];

/// Features that consist of several elements, or of one with another name.
pub(crate) const ELEMENT_GROUPS: &[(&str, &str)] = &[
    ("html-h1-h6", "h1 h2 h3 h4 h5 h6"),
    ("html-image-maps", "map"),
    ("html-lists", "ul ol dl"),
    ("html-object", "object embed image pdf"),
    ("html-semantics", "article aside details figcaption figure footer header main mark nav section summary time"),
];

/// Attributes of any element that are the feature of the same name.
const ATTRIBUTES: &str = "\
    align aria-describedby aria-hidden aria-label aria-labelledby aria-live background cellpadding cellspacing \
    dir height hidden lang popover required role srcset target valign width";

/// Media features, each with the text by which it is recognized.
pub(crate) const MEDIA_FEATURES: [(&str, &str); 5] = [
    ("device-pixel-ratio", "css-at-media-device-pixel-ratio"),
    ("hover", "css-at-media-hover"),
    ("orientation", "css-at-media-orientation"),
    ("prefers-color-scheme", "css-at-media-prefers-color-scheme"),
    ("prefers-reduced-motion", "css-at-media-prefers-reduced-motion"),
];

/// Attributes that Mailpit counts as one use of a property per document.
pub(crate) const STYLE_ATTRIBUTES: [(&str, &str); 6] = [
    ("background", "css-background"),
    ("bgcolor", "css-background-color"),
    ("border", "css-border"),
    ("height", "css-height"),
    ("padding", "css-padding"),
    ("width", "css-width"),
];

/// The features of elements that Mailpit detects.
pub(crate) const MAILPIT_ELEMENTS: &str = "\
    html-audio html-base html-dialog html-form html-hr html-image-maps html-link html-meter html-object \
    html-picture html-progress html-select html-semantics html-style html-svg html-textarea html-video";

/// The attributes that Mailpit detects.
pub(crate) const MAILPIT_ATTRIBUTES: &str = "required srcset";

/// The units that Mailpit detects.
pub(crate) const MAILPIT_UNITS: &str = "ch rem vh vmax vmin vw";

/// The properties that Mailpit detects as the feature of the same name.
const MAILPIT_PROPERTIES: &str = "\
    accent-color align-items aspect-ratio background background-blend-mode background-clip background-color \
    background-image background-origin background-position background-repeat background-size border border-image \
    border-radius box-shadow box-sizing caption-side clip-path column-count direction display filter \
    flex-direction flex-wrap float font font-kerning font-weight gap grid-template height hyphens inline-size \
    justify-content letter-spacing line-height list-style list-style-image list-style-position margin \
    margin-inline max-block-size max-height max-width min-height min-inline-size min-width mix-blend-mode \
    object-fit object-position opacity outline outline-offset overflow overflow-wrap padding position tab-size \
    table-layout text-align text-align-last text-decoration text-decoration-color text-decoration-thickness \
    text-emphasis text-emphasis-position text-indent text-overflow text-shadow text-transform \
    text-underline-offset transform visibility white-space width word-break writing-mode z-index";

/// Returns the attribute of any element that is this feature.
pub(crate) fn attribute(slug: &'static str) -> Option<&'static str> {
    match slug {
        "css-inert-attribute" => Some("inert"),
        "html-loading-attribute" => Some("loading"),
        _ => slug.strip_prefix("html-").filter(|name| contains_word(ATTRIBUTES, name)),
    }
}

/// Returns whether Mailpit counts the property as a use of the feature.
pub(crate) fn is_mailpit_property(slug: &str, property: &str) -> bool {
    match slug {
        "css-margin-block-start-end"
        | "css-margin-inline-start-end"
        | "css-padding-block-start-end"
        | "css-padding-inline-start-end" => true,
        _ => slug.strip_prefix("css-") == Some(property) && contains_word(MAILPIT_PROPERTIES, property),
    }
}

/// Returns whether the feature is neither a property, an element nor an attribute.
pub(crate) fn is_other_construct(slug: &str) -> bool {
    const PREFIXES: &str = "css-at- css-function- css-pseudo- css-selector- css-unit- html-button- html-input- image-";
    const SLUGS: &str = "\
        css-comments css-conic-gradient css-display-flex css-display-grid css-display-none css-important \
        css-intrinsic-size css-linear-gradient css-modern-color css-nesting css-radial-gradient css-rgb css-rgba \
        css-sytem-ui css-variables html-anchor-links html-body html-comments html-doctype html-mailto-links \
        html-meta-color-scheme";
    words(PREFIXES).any(|prefix| slug.starts_with(prefix)) || contains_word(SLUGS, slug)
}

/// Returns the words of a list.
pub(crate) fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(' ')
}

/// Returns whether a list contains a word.
pub(crate) fn contains_word(list: &'static str, word: &str) -> bool {
    words(list).any(|known| known == word)
}
