//! Tests of the build script: its output for a folder with a web interface, and its error messages. The modules are
//! those of the build script.

#[path = "../build/files.rs"]
mod files;
#[path = "../build/imports.rs"]
mod imports;
#[path = "../build/pack.rs"]
mod pack;
#[path = "../build/page.rs"]
mod page;
#[path = "../build/table.rs"]
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use restante_testdir::TestDir;

const TEMPLATE: &str = "<style>{{style}}</style>{{modules}}<script src=\"{{root}}{{assets}}/js/main.js\"></script>";

/// A folder with a web interface, removed when dropped.
struct Folder(TestDir);

impl Folder {
    /// Creates the smallest interface, with these files added or replaced. A file without content is removed.
    fn with(changes: &[(&str, &str)]) -> Self {
        let folder = Self(TestDir::new());
        let minimal = [("index.html", TEMPLATE), ("icon.svg", "<svg/>"), ("js/main.js", "1;"), ("css/1.css", "a{}")];
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
        imports::check(&ui.assets)?;
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
    let table: [(&[(&str, &str)], &str); 12] = [
        (&[("index.html", "")], "ui/index.html: No such file or directory (os error 2)"),
        (&[("icon.svg", "")], "ui/icon.svg is missing"),
        (&[("index.html", "{{root}}{{assets}}{{modules}}")], "ui/index.html does not contain {{style}}"),
        (&[("index.html", &format!("{TEMPLATE}{{{{roof}}}}"))], "ui/index.html: {{roof}} is an unknown placeholder"),
        (&[("index.html", &format!("{TEMPLATE}{{{{root"))], "ui/index.html: {{ without }}"),
        (
            &[("index.html", &format!("{TEMPLATE}<style></style>"))],
            "ui/index.html must contain exactly one <style> element, and style sheets must not contain style tags",
        ),
        (
            &[("css/2.css", "a::after{content:'</style>'}")],
            "ui/index.html must contain exactly one <style> element, and style sheets must not contain style tags",
        ),
        (&[("css/2.css", "a\r\n{}")], "ui/css/2.css contains carriage returns or NUL characters"),
        (&[("js/main.js", "")], "ui/index.html refers to js/main.js, but there is no ui/js/main.js"),
        (&[("js/a b.js", "1;")], "ui/js/a b.js: a file name may only contain letters, digits and -_."),
        (
            &[("js/x/a.js", "import { b } from '../b.js';")],
            "ui/js/x/a.js imports '../b.js', but there is no ui/js/b.js",
        ),
        (
            &[("js/a.js", "import { html } from 'lit';")],
            "ui/js/a.js imports 'lit', which does not start with ./ or ../",
        ),
    ];
    for (changes, expected) in table {
        let folder = Folder::with(changes);
        assert_eq!(folder.build().err().as_deref(), Some(expected), "{changes:?}");
    }
    let missing = files::read(Path::new("/no/such/folder")).err().expect("an error");
    assert!(missing.contains("ui/ is next to crates/"), "{missing}");
}

#[test]
fn finds_all_kinds_of_imports() {
    for import in [
        "import './b.js';",
        "import { b } from './b.js';",
        "import {\n  b,\n} from \"./b.js\";",
        "import { b }\n  from './b.js';",
        "import { b } from\n  './b.js';",
        "import\n  * as b\n  from './b.js';",
        "import\t'./b.js'",
        "import\"./main.js\";import{x}from\"./b.js\"",
        "export * from './b.js';",
        "export{b}from\n`./b.js`",
        "await import('./b.js')",
        "f(await import (\n  './b.js'))",
    ] {
        let file = |path: &str, text: &str| files::File {
            path: path.to_owned(),
            content_type: "text/javascript; charset=utf-8",
            content: text.into(),
        };
        let found = imports::check(&[file("js/main.js", "1;"), file("js/a.js", import)]);
        let expected = Err("ui/js/a.js imports './b.js', but there is no ui/js/b.js".to_owned());
        assert_eq!(found, expected, "{import}");
    }
}

#[test]
fn accepts_valid_interface() {
    let modules = "// import './comment.js'\n/** @type {import('./types.js').X} */\nimport { b } from './x/b.js';\n\
                   const text = 'Mail from \"James\"';\nexport const list = Array.from ('abc');\n\
                   h('p', 'Fetch it from ', h('b'));\nexport { text }; f('from \"here\"');\nexport default 'x';\n\
                   f(import.meta.url, 'we import ', 'and export from ', 'there');";
    let folder = Folder::with(&[
        ("js/a.js", modules),
        ("js/x/b.js", "export { c } from '../main.js';"),
        ("tsconfig.json", "{}"),
        ("README.md", "x"),
        ("js/types.d.ts", "x"),
        (".hidden.js", "x"),
        ("other.html", "x"),
        ("css/0.css", "b{}"),
        ("css/x/deep.css", "c{}"),
    ]);
    let ui = files::read(&folder.ui()).expect("a web interface");
    assert_eq!(ui.style, "b{}a{}", "by the order of their names");
    let paths: Vec<&str> = ui.assets.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["css/x/deep.css", "icon.svg", "js/a.js", "js/main.js", "js/x/b.js"]);
    imports::check(&ui.assets).expect("all modules");
    let pages = page::render(&ui, "abc").expect("pages");
    let page = |root: &str| {
        let preload = |path| format!("<link rel=\"modulepreload\" href=\"{root}assets/abc/{path}\">");
        let modules = ["js/a.js", "js/main.js", "js/x/b.js"].map(preload).join("\n");
        format!("<style>b{{}}a{{}}</style>{modules}<script src=\"{root}assets/abc/js/main.js\"></script>")
    };
    assert_eq!(pages.by_depth, [page("./"), page("../"), page("../../")]);
}

#[test]
fn output_is_reproducible() {
    let long = "export const x = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';\n"
        .repeat(9);
    let packed = |module: &str| {
        let folder = Folder::with(&[("js/a.js", module)]);
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
    fs::write(folder.ui().join("js/main.js"), "2;").expect("a file");
    folder.build().expect("a table");
    assert_eq!(count(&folder), before);
}
