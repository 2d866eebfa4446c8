//! Tests of the build script: its output for a folder with a web interface, and its error messages. The modules are
//! those of the build script.

#[path = "../build/bundle.rs"]
mod bundle;
#[path = "../build/files.rs"]
mod files;
#[path = "../build/pack.rs"]
mod pack;
#[path = "../build/page.rs"]
mod page;
#[path = "../build/table.rs"]
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use restante_testdir::TestDir;

const TEMPLATE: &str =
    "<style>{{style}}</style><script>2</script><script src=\"{{root}}{{assets}}/dist/app.js\"></script>";

/// A folder with a web interface, removed when dropped.
struct Folder(TestDir);

impl Folder {
    /// Creates the smallest interface, with these files added or replaced. A file without content is removed.
    fn with(changes: &[(&str, &str)]) -> Self {
        let folder = Self(TestDir::new());
        let minimal = [
            ("index.html", TEMPLATE),
            ("icon.svg", "<svg/>"),
            ("js/main.js", "1;"),
            ("dist/app.js", "1;"),
            ("css/1.css", "a{}"),
        ];
        for (path, content) in minimal.iter().chain(changes) {
            let path = folder.ui().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            if content.is_empty() {
                fs::remove_file(path).expect("a file");
            } else {
                fs::write(path, content).expect("a file");
            }
        }
        folder
    }

    /// Does everything that the build script does.
    fn build(&self) -> Result<String, String> {
        let ui = files::read(&self.ui())?;
        let hash = pack::hash_files(&ui.assets);
        let pages = page::render(&ui, &hash)?;
        let mut packer = pack::Packer::new(&self.out())?;
        let table = table::write(&mut packer, &ui.assets, &pages, &hash)?;
        packer.finish()?;
        Ok(table)
    }

    fn ui(&self) -> PathBuf {
        self.0.path().join("ui")
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }
}

#[test]
fn reports_errors() {
    let table: [(&[(&str, &str)], &str); 13] = [
        (&[("index.html", "")], "ui/index.html: No such file or directory (os error 2)"),
        (&[("icon.svg", "")], "ui/icon.svg is missing"),
        (&[("index.html", "{{root}}{{assets}}")], "ui/index.html does not contain {{style}}"),
        (&[("index.html", &format!("{TEMPLATE}{{{{roof}}}}"))], "ui/index.html: {{roof}} is an unknown placeholder"),
        (&[("index.html", &format!("{TEMPLATE}{{{{root"))], "ui/index.html: {{ without }}"),
        (
            &[("index.html", &format!("{TEMPLATE}<style></style>"))],
            "ui/index.html must contain exactly one <style> without attributes, and its text must not contain style tags",
        ),
        (
            &[("css/2.css", "a::after{content:'</style>'}")],
            "ui/index.html must contain exactly one <style> without attributes, and its text must not contain style tags",
        ),
        (
            &[("index.html", &TEMPLATE.replace("<script>2</script>", ""))],
            "ui/index.html must contain exactly one <script> without attributes, and its text must not contain script tags",
        ),
        (
            &[("index.html", &format!("{TEMPLATE}<script></script>"))],
            "ui/index.html must contain exactly one <script> without attributes, and its text must not contain script tags",
        ),
        (
            &[("index.html", &TEMPLATE.replace('2', "'{{root}}'"))],
            "the inline script of ui/index.html must not contain {{root}}",
        ),
        (&[("css/2.css", "a\r\n{}")], "ui/css/2.css contains carriage returns or NUL characters"),
        (&[("dist/app.js", "")], "ui/index.html refers to dist/app.js, but there is no ui/dist/app.js"),
        (&[("a b.js", "1;")], "ui/a b.js: a file name may only contain letters, digits and -_."),
    ];
    for (changes, expected) in table {
        let folder = Folder::with(changes);
        assert_eq!(folder.build().err().as_deref(), Some(expected), "{changes:?}");
    }
    let missing = files::top_level(Path::new("/no/such/folder")).expect_err("an error");
    assert!(missing.contains("ui/ is next to crates/"), "{missing}");
}

/// The page loads the bundle, so a change of the modules has no effect until the bundle is generated again.
#[test]
fn bundle_is_current() {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    assert!(bundle::is_current(&ui).expect("a bundle"), "{}", bundle::OUT_OF_DATE);
}

#[test]
fn change_of_a_module_is_detected() {
    let folder = Folder::with(&[("js/lib/a.js", "2;")]);
    assert_eq!(bundle::is_current(&folder.ui()), Ok(false));
    // Computed with another program.
    let hash = "d2ddf34e5729620d769181a5176869611052734a5e27a304eb0efeb2363ffb80";
    let code = "0889a34434e586e918436027c4e8b4c3380f84643731bdeb57024adb8745cf53";
    let line = format!("/* sources: {hash}, bundle: {code} */");
    fs::write(folder.ui().join(bundle::BUNDLE), format!("{line}\n1;")).expect("a file");
    assert_eq!(bundle::is_current(&folder.ui()), Ok(true));
    for (path, content) in [("js/main.js", "3;"), ("js/lib/b.js", "2;"), ("js/lib/a.js", "")] {
        let (path, before) = (folder.ui().join(path), fs::read(folder.ui().join(path)).ok());
        fs::write(&path, content).expect("a file");
        assert_eq!(bundle::is_current(&folder.ui()), Ok(false), "{}", path.display());
        match before {
            Some(before) => fs::write(path, before).expect("a file"),
            None => fs::remove_file(path).expect("a file"),
        }
    }
    assert_eq!(bundle::is_current(&folder.ui()), Ok(true));
    fs::rename(folder.ui().join("js/lib/a.js"), folder.ui().join("js/lib/c.js")).expect("a file");
    assert_eq!(bundle::is_current(&folder.ui()), Ok(false));
}

#[test]
fn edit_of_the_bundle_is_detected() {
    let folder = Folder::with(&[("js/lib/a.js", "2;")]);
    // Computed with another program.
    let hash = "d2ddf34e5729620d769181a5176869611052734a5e27a304eb0efeb2363ffb80";
    let code = "0889a34434e586e918436027c4e8b4c3380f84643731bdeb57024adb8745cf53";
    let table = [
        (format!("/* sources: {hash}, bundle: {code} */\n1;"), true),
        (format!("/* sources: {hash}, bundle: {code} */\n2;"), false),
        (format!("/* sources: {hash}, bundle: {code} */\n1;\n"), false),
        (format!("/* sources: {hash}, bundle: {code} */3;\n1;"), false),
        (format!("/* sources: {code}, bundle: {code} */\n1;"), false),
        (format!("/* sources: {hash}, bundle: {code} */"), false),
        (format!("/* sources: {hash} */\n1;"), false),
        ("1;".to_owned(), false),
    ];
    for (bundle, expected) in table {
        fs::write(folder.ui().join(bundle::BUNDLE), &bundle).expect("a file");
        assert_eq!(bundle::is_current(&folder.ui()), Ok(expected), "{bundle}");
    }
}

#[test]
fn accepts_valid_interface() {
    let folder = Folder::with(&[
        ("dist/app.js.map", "{}"),
        ("js/x/b.js", "2;"),
        ("tsconfig.json", "{}"),
        ("bundle.mjs", "x"),
        ("node_modules/tool/tool.js", "x"),
        ("README.md", "x"),
        (".hidden.js", "x"),
        ("other.html", "x"),
        ("css/0.css", "b{}"),
        ("css/x/deep.css", "c{}"),
    ]);
    let ui = files::read(&folder.ui()).expect("a web interface");
    assert_eq!(ui.style, "b{}a{}", "by the order of their names");
    let paths: Vec<&str> = ui.assets.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["css/x/deep.css", "dist/app.js", "dist/app.js.map", "icon.svg"]);
    let watched = files::top_level(&folder.ui()).expect("a folder");
    assert!(watched.contains(&folder.ui().join("js")) && !watched.contains(&folder.ui().join("node_modules")));
    let pages = page::render(&ui, "abc").expect("pages");
    let page = |root: &str| {
        format!("<style>b{{}}a{{}}</style><script>2</script><script src=\"{root}assets/abc/dist/app.js\"></script>")
    };
    assert_eq!(pages.by_depth, [page("./"), page("../"), page("../../")]);
    // printf 2 | openssl sha256 -binary | base64
    assert!(pages.policy.contains("; script-src 'self' 'sha256-1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR+Q2jpmbuwTqzU='; "));
    assert!(!pages.login_policy.contains("script"));
}

#[test]
fn output_is_reproducible() {
    let long = "export const x = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';\n"
        .repeat(9);
    let packed = |module: &str| {
        let folder = Folder::with(&[("dist/app.js", module)]);
        // The second build reuses the files of the first.
        let table = folder.build().expect("a table");
        assert_eq!(folder.build().as_ref(), Ok(&table));
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(folder.out())
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
            .map(|path| (path.file_name().expect("a name").into(), fs::read(path).expect("a file")))
            .collect();
        files.sort_unstable();
        (table, files)
    };
    let first = packed(&long);
    assert_eq!(packed(&long), first);
    assert_ne!(packed(&long.replace('x', "y")), first);
}

/// Otherwise a build with other parameters would reuse the files of this one.
#[test]
fn names_of_packed_files_contain_parameters() {
    let folder = Folder::with(&[]);
    folder.build().expect("a table");
    for entry in fs::read_dir(folder.out()).expect("a folder") {
        let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
        let (_, extension) = name.split_once('.').expect("an extension");
        assert!(["br-11-22", "gz-9", "raw"].contains(&extension), "{name}");
    }
}

#[test]
fn files_of_earlier_builds_are_removed() {
    let folder = Folder::with(&[]);
    let count = |folder: &Folder| fs::read_dir(folder.out()).expect("a folder").count();
    folder.build().expect("a table");
    let before = count(&folder);
    fs::write(folder.out().join("0123456789abcdef.br"), "x").expect("a file");
    fs::write(folder.ui().join("dist/app.js"), "2;").expect("a file");
    folder.build().expect("a table");
    assert_eq!(count(&folder), before);
}
