//! The command `readyz`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Checks, run};
use crate::mailpit::server::{Program, Server};

#[test]
fn readyz_has_the_exit_codes_of_mailpit() {
    run("readyz", |checks| {
        paths(checks);
        waiting(checks);
    });
}

/// Runs the command. Returns its exit code.
fn run_command(program: &Program, arguments: &[&str]) -> Option<i32> {
    let mut command = program.command();
    let command = command.arg("readyz").args(arguments);
    command.output().unwrap().status.code()
}

fn paths(checks: &mut Checks) {
    for (webroot, rows) in
        [("", [("", 0), ("/", 0), ("/box", 1)]), ("/box", [("/box", 0), ("/box/", 0), ("/other", 1)])]
    {
        let server = Server::start(&checks.program, &[("MP_WEBROOT", webroot)]);
        let address = server.http().to_string();
        for (argument, code) in rows {
            let arguments = ["--listen", &address, "--webroot", argument];
            let what = format!("readyz --webroot {argument:?} of a server at {webroot:?}");
            checks.equal(&what, run_command(&checks.program, &arguments), code);
            let arguments = [&arguments[..], &["--https"]].concat();
            checks.equal(format!("{what} with --https"), run_command(&checks.program, &arguments), 1);
        }
        if !webroot.is_empty() {
            let code = run_command(&checks.program, &["--listen", &address]);
            checks.differs("readyz at the root", code, [1, 0], "at the root too if there is a web root");
        }
    }
}

fn waiting(checks: &mut Checks) {
    // The first answer is that of a server that is not ready.
    let (address, requests) = server_with(|number| if number == 0 { 503 } else { 200 });
    checks.equal("readyz of a server that is not ready", run_command(&checks.program, &["-l", &address]), 1);
    checks.equal("readyz of a server that is ready", run_command(&checks.program, &["-l", &address]), 0);
    checks.equal("each has sent one request", requests.load(Ordering::Relaxed), 2);

    let (address, requests) = server_with(|number| if number == 0 { 503 } else { 200 });
    let arguments = ["-l", &address, "--wait", "--timeout", "60s"];
    checks.equal("readyz --wait until the server is ready", run_command(&checks.program, &arguments), 0);
    checks.equal("it has sent several requests", requests.load(Ordering::Relaxed) > 1, true);

    let (address, requests) = server_with(|_| 503);
    let arguments = ["-l", &address, "--wait", "--timeout", "3s"];
    checks.equal("readyz --wait for a server that is never ready", run_command(&checks.program, &arguments), 1);
    checks.equal("it has sent a request", requests.load(Ordering::Relaxed) > 0, true);
}

/// Starts a server with these statuses. Returns its address and the number of requests. It runs until the test program exits.
fn server_with(status: fn(usize) -> u16) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // An error is a client that has gone.
            let _ = BufReader::new(&stream).lines().map_while(Result::ok).find(String::is_empty);
            let code = status(counter.fetch_add(1, Ordering::Relaxed));
            let _ = write!(stream, "HTTP/1.1 {code} Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (address, requests)
}
