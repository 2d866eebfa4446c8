//! `restante project test`, and the table of rules in `restante config check`.

use std::process::{Command, Output};

const RULES: &str = "shop login=shop-*; srs header=X-Application:srs; {1} domain=*.acme.test; ci listener=:2526; \
                     legacy client=10.1.0.0/16 helo=legacy-* sender=*@old.test; {1} key=SG.*.*";

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
    command.env_clear().env("RESTANTE_PROJECTS_RULES", RULES).args(arguments).output().unwrap()
}

#[test]
fn prints_project_mailbox_and_rule_of_each_recipient() {
    let bob = ["--to", "Bob+x@x.org"];
    let by_shop = "Bob+x@x.org  shop:bob  shop (rule 1: shop login=shop-*)\n";
    let table: [(&[&str], &str); 11] = [
        (&["--login", "shop-7"], by_shop),
        (&["--login", "shop-7", "--header", "X-Application: srs"], by_shop),
        (&["--login", "other"], "Bob+x@x.org  bob  none: no rule matches\n"),
        (
            &["--header", "A: b", "--header", "x-application: SRS"],
            "Bob+x@x.org  srs:bob  srs (rule 2: srs header=X-Application:srs)\n",
        ),
        (
            &["--to", "Ann@QA.acme.test"],
            "Bob+x@x.org  bob  none: no rule matches\n\
             Ann@QA.acme.test  qa:ann  qa (rule 3: {1} domain=*.acme.test)\n",
        ),
        (&["--listener", "localhost:2526"], "Bob+x@x.org  ci:bob  ci (rule 4: ci listener=:2526)\n"),
        (
            &["--client", "10.1.2.3", "--helo", "legacy-1", "--from", "a@old.test"],
            "Bob+x@x.org  legacy:bob  legacy (rule 5: legacy client=10.1.0.0/16 helo=legacy-* sender=*@old.test)\n",
        ),
        (
            &["--client", "10.2.2.3", "--helo", "legacy-1", "--from", "a@old.test"],
            "Bob+x@x.org  bob  none: no rule matches\n",
        ),
        (&["--key", "SG.Shop.x1"], "Bob+x@x.org  shop:bob  shop (rule 6: {1} key=SG.*.*)\n"),
        (&["--key", "re_Shop"], "Bob+x@x.org  bob  none: no rule matches\n"),
        (&["--projects-rules", "all", "--mailboxnaming", "full"], "Bob+x@x.org  all:bob@x.org  all (rule 1: all)\n"),
    ];
    for (arguments, expected) in table {
        let output = run(&[&["project", "test"], &bob[..], arguments].concat());
        assert_eq!(
            (String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()),
            (expected, Some(0)),
            "{output:?}"
        );
    }
}

#[test]
fn invalid_arguments_are_reported() {
    let table: [(&[&str], i32, &str); 7] = [
        (&[], 2, "--to <ADDRESS>"),
        (&["--to", "bob"], 2, "must be an address such as ann@example.org: the domain is missing"),
        (&["--to", "\"a b\"@x.org"], 1, "\"a b\"@x.org: the mailbox name has a character that needs quotes"),
        (&["--to", "a@x.org", "--client", "10.0.0.0/8"], 2, "invalid IP address"),
        (&["--to", "a@x.org", "--listener", "2500"], 2, "is not a listen address: expected IP:PORT, localhost:PORT"),
        (&["--to", "a@x.org", "--header", "a b: c"], 2, "must be NAME: VALUE, such as 'X-Application: shop'"),
        (
            &["--to", "a@x.org", "--projects-rules", "a; Shop"],
            2,
            "projects.rules = \"a; Shop\" (flag --projects-rules): rule 2 (Shop) has the invalid name",
        ),
    ];
    for (arguments, code, expected) in table {
        let output = run(&[&["project", "test"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && error.contains(expected), "{arguments:?} {output:?}");
    }
}

#[test]
fn config_check_prints_the_rules() {
    let output = run(&["config", "check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let table =
        "# The rules that choose a project; the first match decides:\n#   1 shop login=shop-*\n#   2 srs header=";
    assert!(text.contains(table) && text.contains("\n#   5 legacy client="), "{text}");
}
