//! The command `run`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use restante_testdir::TestDir;

use super::{program, restante, run, run_with};
use crate::support::Server;

#[test]
fn command_has_a_run_of_its_own() {
    let server = Server::start(&[]);
    let script = "restante=$1; echo \"$RESTANTE_PROJECT $SMTP_HOST:$SMTP_PORT $RESTANTE_USER\"
        test \"$SMTP_USERNAME\" = \"$RESTANTE_PROJECT\" && test \"$SMTP_PASSWORD\" = \"$RESTANTE_TOKEN\" || exit 7
        \"$restante\" send --to bob@x.org --subject by-login --text x
        env -u RESTANTE_TOKEN \"$restante\" send --to \"ann@$RESTANTE_DOMAIN\" --subject by-domain --text x
        for mailbox in bob ann; do \"$restante\" list \"$RESTANTE_PROJECT:$mailbox\" --json; done
        exit 3";
    let mut command = restante(&server);
    command.env("RESTANTE_USER", "eve").env("RESTANTE_PASSWORD", "x").env("PATH", env!("PATH"));
    command.args(["run", "--expires", "10m", "--", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_restante")]);
    let (code, out, stderr) = run(&mut command);
    assert_eq!((code, stderr.as_str()), (3, ""), "{out}");
    let (first, listed) = out.split_once('\n').unwrap();
    let (project, rest) = first.split_once(' ').unwrap();
    assert!(project.starts_with("run-"), "{out}");
    assert_eq!(rest, format!("{} ", server.smtp));
    assert!(listed.contains("by-login") && listed.contains("by-domain"), "{out}");
    assert_eq!((server.count(&format!("{project}:bob")), server.count("bob")), (0, 0));
}

#[test]
fn exit_code_tells_whether_the_command_could_be_run() {
    let server = Server::start(&[]);
    let table: [(&[&str], i32, &str); 5] = [
        (&["run", "true"], 0, ""),
        (&["run", "--", "sh", "-c", "exit 42"], 42, ""),
        (&["run", "--", "/nonexistent"], 5, "/nonexistent cannot be run: "),
        (&["run", "--expires", "25h", "--", "true"], 2, "expires-in"),
        (&["run"], 2, "required"),
    ];
    for (arguments, expected, text) in table {
        let (code, _, stderr) = run(restante(&server).env("PATH", env!("PATH")).args(arguments));
        assert!(code == expected && stderr.contains(text), "{arguments:?}: {code} {stderr}");
    }
    let (code, _, stderr) = run(restante(&server).args(["run", "--server", "127.0.0.1:1", "--", "true"]));
    assert!(code == 3 && stderr.contains("cannot be reached"), "{stderr}");
}

/// With a token that may not delete the mail of other projects, below the path of a project, and in another run.
#[test]
fn mail_of_a_run_is_deleted_with_its_token() {
    let dir = TestDir::new();
    let [users, tokens] = ["users", "tokens.toml"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let program = || program(Path::new(env!("CARGO_BIN_EXE_restante")), "");
    let admin = ["user", "add", "root", "--auth-users", &users];
    assert_eq!(run_with(program().args(admin), b"secret\n").0, 0);
    let create = ["token", "create", "ci", "--project", "shop", "--scope", "read,write", "--auth-tokens", &tokens];
    let (code, token, stderr) = run(program().args(create));
    assert_eq!(code, 0, "{stderr}");
    let server = Server::start(&["--auth-users", &users, "--auth-tokens", &tokens]);
    let script = "\"$1\" send --to bob@x.org --subject x --text x; \"$1\" list bob --json; echo \"$RESTANTE_PROJECT\"";
    let (plain, nested) = (["run", "--", "sh"].as_slice(), ["run", "--", "PROGRAM", "run", "--", "sh"].as_slice());
    for (base, arguments) in [("", plain), ("", nested), ("/p/shop", plain)] {
        let mut command = restante(&server);
        command.env("RESTANTE_SERVER", server.url(base)).env("RESTANTE_TOKEN", token.trim()).env("PATH", env!("PATH"));
        let arguments = arguments.iter().map(|name| name.replace("PROGRAM", env!("CARGO_BIN_EXE_restante")));
        command.args(arguments).args(["-c", script, "sh", env!("CARGO_BIN_EXE_restante")]);
        let (code, out, stderr) = run(&mut command);
        assert_eq!((code, stderr.as_str()), (0, ""), "{base} {out}");
        let (list, project) = out.trim_end().rsplit_once('\n').unwrap();
        assert!(list.contains("\"subject\"") && project.starts_with("run-"), "{out}");
        let mut list = restante(&server);
        list.env("RESTANTE_USER", "root").env("RESTANTE_PASSWORD", "secret");
        let (code, left, stderr) = run(list.args(["list", &format!("{project}:bob"), "--json"]));
        assert_eq!((code, left.trim()), (1, "[]"), "the mailbox is not empty: {stderr}");
    }
}

/// The command ends by the signal that the program gets, and then its mail is deleted.
#[test]
fn signals_are_passed_on() {
    let server = Server::start(&[]);
    for (signal, code) in [("TERM", 12), ("INT", 13), ("HUP", 14)] {
        let script = "trap 'exit 12' TERM; trap 'exit 13' INT; trap 'exit 14' HUP
            \"$1\" send --to bob@x.org --subject x --text x; echo \"$RESTANTE_PROJECT\"
            while :; do sleep 0.1; done";
        let mut command = restante(&server);
        command.env("PATH", env!("PATH")).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.args(["run", "--", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_restante")]);
        let mut child = command.spawn().unwrap();
        let mut project = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut project).unwrap();
        let mailbox = format!("{}:bob", project.trim());
        assert_eq!(server.count(&mailbox), 1);
        let killed = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let status = child.wait().unwrap();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{signal}: {stderr}");
        assert_eq!(server.count(&mailbox), 0, "{signal}");
    }
}
