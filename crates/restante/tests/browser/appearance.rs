//! Appearance and accessibility: screenshots of every page in light, dark and phone mode for review, and checks of contrast, accessible
//! names, width and motion.

use serde_json::{Value, json};

use super::page::{DisplayMode, Page};
use super::sample_mail;
use crate::support::Server;

/// The path of each page, a selector that exists when it is complete, and its name.
const PAGES: [(&str, &str, &str); 17] = [
    ("/", ".message-row .row-clip:not(.none)", "inbox"),
    ("/send", ".snippet-code", "send"),
    ("/m/anna.keller", ".row-clip:not(.none)", "list"),
    ("/m/anna.keller/latest", ".preview", "message"),
    ("/m/newsletter/latest", "message-view:has(.remote-note) .preview", "remote"),
    ("/m/nobody", "empty-list h2", "empty"),
    ("/m/anna..keller", "empty-list h2", "refused"),
    ("/settings", "settings-page h1", "settings"),
    ("/status", ".status-words li", "status"),
    ("/m/anna.keller/1", "message-view .empty :is(h1, h2)", "gone"),
    ("/m/ci/latest", ".message-text", "text"),
    ("/api/docs#readMessage", "main details[open] pre", "api"),
    ("/search?q=order+or+invoice", ".message-row", "search"),
    ("/search?q=before:soon", ".search-help dl", "language"),
    ("/sessions", ".session", "sessions"),
    ("/relay", "relay-page .empty h2", "relay"),
    ("/webhooks", "webhooks-page .empty h2", "webhooks"),
];

/// Returns by how many pixels the page is wider than the window.
const OVERHANG: &str = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";

/// Returns the brightness of the background, from 0 to 1.
const BRIGHTNESS: &str = "
    const [red, green, blue] = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9.]+/g).map(Number);
    return (red + green + blue) / 3 / 255";

/// Returns texts with too little contrast for WCAG 2.2, success criterion 1.4.3. Transparent colors are blended.
const LOW_CONTRAST: &str = "
    const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
    const known = new Map();
    const colour = text => {
        if (!known.has(text)) {
            context.clearRect(0, 0, 1, 1);
            context.fillStyle = text;
            context.fillRect(0, 0, 1, 1);
            const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
            known.set(text, { rgb: [red, green, blue], alpha: alpha / 255 });
        }
        return known.get(text);
    };
    const over = (upper, lower) => upper.rgb.map((part, at) => part * upper.alpha + lower[at] * (1 - upper.alpha));
    const ancestors = element => element ? [...ancestors(element.parentElement), element] : [];
    const ground = element => ancestors(element).reduce((below, each) => over(colour(getComputedStyle(each).backgroundColor), below), [255, 255, 255]);
    const light = rgb => rgb.map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const contrast = (one, other) => (Math.max(light(one), light(other)) + 0.05) / (Math.min(light(one), light(other)) + 0.05);
    const seen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest('.hidden');
    const exempt = element => element.closest(':disabled, [aria-disabled=true]');
    const judge = (element, style, words) => {
        const faded = ancestors(element).reduce((all, each) => all * getComputedStyle(each).opacity, 1);
        const below = ground(element);
        const ink = colour(style.color);
        const found = contrast(over({ rgb: ink.rgb, alpha: ink.alpha * faded }, below), below);
        const size = parseFloat(style.fontSize);
        const isLarge = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
        if (found < (isLarge ? 3 : 4.5)) faint.push(`${found.toFixed(2)} ${element.localName}.${element.className}: ${words.trim().slice(0, 40)}`);
    };
    const faint = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const { data, parentElement: element } = texts.currentNode;
        if (data.trim() && seen(element) && !exempt(element)) judge(element, getComputedStyle(element), data);
    }
    for (const field of document.querySelectorAll('input[placeholder]')) {
        if (seen(field) && !exempt(field)) judge(field, getComputedStyle(field, '::placeholder'), field.placeholder);
    }
    return [...new Set(faint)]";

/// Returns accessibility errors other than missing names, which the browser reports.
const FLAWS: &str = "
    const flaws = [];
    const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
    for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) flaws.push(`#${id} is there twice`);
    for (const image of document.querySelectorAll('img:not([alt])')) flaws.push(`${image.src} has no alt`);
    for (const frame of document.querySelectorAll('iframe:not([title])')) flaws.push(`${frame.src} has no title`);
    if (!document.documentElement.lang) flaws.push('no language');
    if (!document.title) flaws.push('no title');
    // In the one-column layout a message replaces the list, whose name is the first heading; then it is the subject.
    const heads = [...document.querySelectorAll('h1')].filter(head => head.checkVisibility());
    if (heads.length !== 1) flaws.push(`${heads.length} first headings`);
    for (const attribute of ['aria-controls', 'aria-labelledby', 'aria-activedescendant', 'for']) {
        for (const element of document.querySelectorAll(`[${attribute}]`)) {
            if (!document.getElementById(element.getAttribute(attribute))) flaws.push(`${attribute} of ${element.outerHTML.slice(0, 80)} leads nowhere`);
        }
    }
    return flaws";

/// The roles that need an accessible name.
const ROLES_WITH_NAME: [&str; 14] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "checkbox",
    "combobox",
    "tab",
    "option",
    "listbox",
    "image",
    "img",
    "dialog",
    "Iframe",
    "separator",
];

/// Opens a page and waits until it is complete.
#[track_caller]
pub(crate) fn open(page: &Page, path: &str, landmark: &str) {
    page.open(path);
    page.find(landmark);
    if page.count(".preview") > 0 {
        // The frame is loaded after the page.
        let loaded = "return location.href !== 'about:blank' && document.readyState === 'complete'";
        page.until("the frame", || page.in_frame(".preview", |frame| frame.eval(loaded, &json!([])) == true));
    }
    page.until_at_rest();
}

/// Returns the elements without an accessible name.
fn nameless(page: &Page) -> Vec<String> {
    let tree = page.command("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let is_nameless = |node: &&Value| {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        node["ignored"] == false
            && ROLES_WITH_NAME.contains(&role)
            && node["name"]["value"].as_str().unwrap_or_default().trim().is_empty()
    };
    let is_installed = |node: &Value| node["role"]["value"] == "button" || node["role"]["value"] == "link";
    assert!(nodes.iter().any(is_installed), "the accessibility tree is empty");
    nodes.iter().filter(is_nameless).map(|node| format!("{} {}", node["role"]["value"], node["properties"])).collect()
}

#[test]
fn screenshots_of_all_pages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    let check = |name: &str, mode: DisplayMode, suffix: &str| {
        page.screenshot(&format!("{name}-{suffix}"));
        assert_eq!(page.measure(OVERHANG, &json!([])), 0, "{name} is wider than the window in {suffix}");
        let brightness = page.eval(BRIGHTNESS, &json!([])).as_f64().unwrap();
        let is_dark = mode == DisplayMode::Dark;
        assert_eq!(brightness < 0.5, is_dark, "{name} has a brightness of {brightness} in {suffix}");
    };
    for mode in [DisplayMode::Light, DisplayMode::Phone] {
        page.set_display_mode(mode);
        for (path, landmark, name) in PAGES {
            open(&page, path, landmark);
            if mode == DisplayMode::Phone {
                check(name, mode, "phone");
                continue;
            }
            check(name, mode, "light");
            page.set_display_mode(DisplayMode::Dark);
            page.until_at_rest();
            check(name, DisplayMode::Dark, "dark");
            page.set_display_mode(DisplayMode::Light);
        }
    }
    let console = page.console();
    let complaints = console.iter().filter(|line| {
        !line.contains("/messages/1")
            && !line.contains("/1 - Failed")
            && !line.contains("anna..keller")
            && !line.contains("before%3Asoon")
    });
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "console messages");
    assert_eq!(page.external_requests(), [""; 0], "requests to other hosts");
}

#[test]
fn texts_have_contrast_and_controls_have_names() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    let mut flaws = Vec::new();
    let found = |script: &str| serde_json::from_value::<Vec<String>>(page.eval(script, &json!([]))).unwrap();
    let mut judge = |what: &str, mode: DisplayMode| {
        page.until_at_rest();
        let mut all = [found(LOW_CONTRAST), found(FLAWS), nameless(&page)].concat();
        // In the dark theme the same elements have other colors.
        if mode == DisplayMode::Light {
            page.set_display_mode(DisplayMode::Dark);
            page.until_at_rest();
            all.extend(found(LOW_CONTRAST).into_iter().map(|flaw| format!("in the dark theme: {flaw}")));
            page.set_display_mode(DisplayMode::Light);
        }
        flaws.extend(all.into_iter().map(|flaw| format!("{what} in {mode:?}: {flaw}")));
    };
    for mode in [DisplayMode::Light, DisplayMode::Phone] {
        page.set_display_mode(mode);
        for (path, landmark, name) in PAGES {
            open(&page, path, landmark);
            judge(name, mode);
        }
        let invoice = &server.ids("anna.keller")[3];
        open(&page, &format!("/m/anna.keller/{invoice}"), ".message-subject");
        // On a phone some tabs are in a menu.
        for (key, tab) in
            [("3", "links"), ("4", "headers"), ("5", "parts"), ("6", "source"), ("7", "session"), ("2", "text")]
        {
            page.keys(key);
            page.find(&format!("#panel-{tab} :is(.panel-body, .empty) > *"));
            judge(tab, mode);
        }
        page.keys("?");
        page.find("dialog");
        judge("help", mode);
        page.keys(super::page::key::ESCAPE);
        page.click("message-pane .danger");
        page.find(".toast");
        judge("a toast", mode);
        page.keys("z");
        page.until("the end of the toast", || page.count(".toast") == 0);
        // The selected tab would be shown the next time.
        page.eval("localStorage.clear()", &json!([]));
    }
    assert_eq!(flaws, [""; 0], "{flaws:#?}");
}

#[test]
fn accessibility_checks_detect_errors() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(
        "data:text/html,<h1 id=x>One</h1><h1 id=x>Two</h1><img src=data:,><button></button><button>Named</button>",
    );
    let style = "
        document.body.style = 'background: rgb(40 40 40)';
        document.querySelector('h1').style = 'color: gray; font-size: 16px';
        document.querySelector('button:last-child').style = 'color: white; background: rgb(255 255 255 / 10%)'";
    page.eval(style, &json!([]));
    let found = |script: &str| serde_json::from_value::<Vec<String>>(page.eval(script, &json!([]))).unwrap();
    assert_eq!(found(LOW_CONTRAST), ["3.73 h1.: One", "1.42 h1.: Two"]);
    assert_eq!(found(FLAWS), ["#x is there twice", "data:, has no alt", "no language", "no title", "2 first headings"]);
    assert_eq!(nameless(&page).len(), 2, "the image and the first button: {:#?}", nameless(&page));
}

#[test]
fn theme_follows_the_system_until_one_is_chosen() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let is_dark = || page.eval(BRIGHTNESS, &json!([])).as_f64().unwrap() < 0.5;
    page.set_display_mode(DisplayMode::Dark);
    page.open("/status");
    page.find("[data-tool=theme]:not([hidden])");
    assert!(is_dark());
    page.set_display_mode(DisplayMode::Light);
    assert!(!is_dark(), "it does not follow the system");
    // The order is system, light, dark: two clicks to dark.
    page.click("[data-tool=theme]");
    page.click("[data-tool=theme]");
    page.expect_attribute("[data-tool=theme]", "aria-label", "Theme: dark");
    assert!(is_dark());
    page.reload();
    page.find("[data-tool=theme]:not([hidden])");
    assert!(is_dark(), "the theme is not saved");
    page.set_display_mode(DisplayMode::Dark);
    page.click("[data-tool=theme]");
    page.click("[data-tool=theme]");
    assert!(!is_dark(), "the chosen theme does not override the system");
    page.assert_quiet();
}

#[test]
fn reduced_motion_disables_animations() {
    let mut server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    let features = json!({ "features": [{ "name": "prefers-reduced-motion", "value": "reduce" }] });
    page.command("Emulation.setEmulatedMedia", &features);
    let motions = || page.eval("return document.getAnimations().length", &json!([]));
    for (path, landmark, name) in PAGES {
        page.open(path);
        page.find(landmark);
        assert_eq!(motions(), 0, "{name} has animations");
    }
    page.open("/");
    page.until("the connection", || page.text(".live-state") == "Live");
    server.deliver("james@x.org", &super::mails::text("New", "Hello"));
    page.until("the arrival", || page.texts(".row-subject").contains(&"New".to_owned()));
    assert_eq!(motions(), 0, "an arrival is animated");
    server.kill();
    page.until("the connection message", || page.count(".connection:not([hidden])") == 1);
    assert_eq!(motions(), 0, "the connection message is animated");
}
