//! Start and end of servers, and proxies in front of servers that identify themselves.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use super::installation::skip;
use super::{FaultProxy, Postgres, ReservedPort};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);
/// Long enough that most unwanted events would have happened.
const MOMENT: Duration = Duration::from_millis(200);

/// Returns the output of a statement. `None` if psql is not installed.
fn psql(postgres: &Postgres, statement: &str) -> Option<String> {
    let psql = postgres.installation.program("psql");
    if !psql.is_file() {
        skip("psql is not installed");
        return None;
    }
    let mut command = Command::new(psql);
    let output = command.args(["-XAtqc", statement]).arg(postgres.url()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(LONG))?;
    Ok(stream)
}

#[test]
fn commits_survive_kill_and_stop() {
    for (start, fsync) in [(Postgres::start as fn() -> _, "off"), (Postgres::start_durable, "on")] {
        let Some(mut postgres) = start() else { return };
        let port = postgres.port();
        psql(&postgres, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
        postgres.kill();
        assert!(connect(port).is_err());
        postgres.start_again();
        psql(&postgres, "INSERT INTO t VALUES (2)");
        postgres.stop();
        assert!(connect(port).is_err());
        postgres.start_again();
        assert_eq!(postgres.port(), port);
        connect(port).unwrap();
        if let Some(output) = psql(&postgres, "SHOW fsync; SELECT n FROM t ORDER BY n") {
            assert_eq!(output, format!("{fsync}\n1\n2"));
        }
    }
}

#[test]
fn kill_ends_running_statement() {
    let Some(mut postgres) = Postgres::start() else { return };
    let psql = postgres.installation.program("psql");
    if !psql.is_file() {
        return skip("psql is not installed");
    }
    // It does not read from its connection, so it would not notice that the server is gone.
    let busy = "SELECT 'begun'; DO $$ BEGIN LOOP END LOOP; END $$";
    let mut command = Command::new(psql);
    command.args(["-XAtq"]).arg(postgres.url()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = command.spawn().unwrap();
    writeln!(client.stdin.take().unwrap(), "{busy};").unwrap();
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    postgres.kill();
    assert!(!client.wait().unwrap().success());
    postgres.start_again();
}

#[test]
fn shared_server_is_the_same_for_all_callers() {
    let Some(postgres) = Postgres::shared() else { return };
    connect(postgres.port()).unwrap();
    assert_eq!(
        Postgres::shared().unwrap().url(),
        format!("postgres://restante@127.0.0.1:{}/postgres", postgres.port())
    );
}

#[test]
fn dropped_server_leaves_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    let (port, directory) = (postgres.port(), postgres.directory().to_owned());
    assert!(directory.exists());
    drop(postgres);
    assert!(connect(port).is_err());
    assert!(!directory.exists());
}

#[test]
fn killed_test_program_leaves_nothing() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "tests::waits_to_be_killed", "--ignored", "--nocapture"]);
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map_while(Result::ok);
    let words = lines.find_map(|line| Some(line.split_once("SERVER ")?.1.to_owned()));
    program.kill().unwrap();
    program.wait().unwrap();
    let Some(words) = words else { return skip("the program had no server") };
    let (port, directory) = words.split_once(' ').unwrap();
    let (port, directory) = (port.parse().unwrap(), Path::new(directory));
    let start = Instant::now();
    while directory.exists() || connect(port).is_ok() {
        assert!(start.elapsed() < LONG, "the server is still running");
        thread::sleep(MOMENT);
    }
}

/// The program that the test above starts and kills. Run by hand, it ends at once or with Ctrl-D.
#[test]
#[ignore = "is a part of another test"]
fn waits_to_be_killed() {
    let Some(postgres) = Postgres::shared() else { return };
    println!("SERVER {} {}", postgres.port(), postgres.directory().display());
    let _ = io::stdin().read(&mut [0]);
}

/// Starts a server that sends a letter to every client, and then echoes what it receives.
fn start_echo_server(letter: u8) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                stream.write_all(&[letter])?;
                io::copy(&mut &stream, &mut &stream)
            });
        }
    });
    port
}

/// Reads this number of bytes.
fn read_bytes(mut stream: &TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut received = vec![0; length];
    stream.read_exact(&mut received)?;
    Ok(received)
}

/// Returns a connection whose server has sent its letter.
fn connect_greeted(port: u16) -> TcpStream {
    let stream = connect(port).unwrap();
    assert_eq!(read_bytes(&stream, 1).unwrap(), b"a");
    stream
}

#[test]
fn proxy_forwards_data_and_end_of_stream() {
    let proxy = FaultProxy::new(start_echo_server(b'a'));
    let mut stream = connect_greeted(proxy.port());
    let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writer_thread = thread::spawn(move || {
        writer.write_all(&copy)?;
        writer.shutdown(std::net::Shutdown::Write)
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writer_thread.join().unwrap().unwrap();
    assert!(received == sent);
}

#[test]
fn disconnected_proxy_closes_and_refuses_connections() {
    let mut proxy = FaultProxy::new(start_echo_server(b'a'));
    let streams = [connect_greeted(proxy.port()), connect_greeted(proxy.port())];
    for _ in 0..2 {
        proxy.disconnect();
    }
    proxy.hang();
    for stream in &streams {
        let error = read_bytes(stream, 1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
    }
    assert_eq!(connect(proxy.port()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    proxy.restore();
    connect_greeted(proxy.port());
}

#[test]
fn hanging_proxy_is_silent_and_loses_nothing() {
    let mut proxy = FaultProxy::new(start_echo_server(b'a'));
    let mut old = connect_greeted(proxy.port());
    proxy.hang();
    old.write_all(b"late").unwrap();
    let new = connect(proxy.port()).unwrap();
    for stream in [&old, &new] {
        stream.set_read_timeout(Some(MOMENT)).unwrap();
        let error = read_bytes(stream, 1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        stream.set_read_timeout(Some(LONG)).unwrap();
    }
    proxy.restore();
    assert_eq!(read_bytes(&old, 4).unwrap(), b"late");
    assert_eq!(read_bytes(&new, 1).unwrap(), b"a");
    proxy.hang();
    proxy.disconnect();
    assert!(read_bytes(&old, 1).is_err());
}

#[test]
fn proxy_without_server_closes_connections() {
    let nowhere = ReservedPort::new();
    let proxy = FaultProxy::new(nowhere.get());
    assert!(read_bytes(&connect(proxy.port()).unwrap(), 1).is_err());
}

#[test]
fn balancer_skips_servers_that_refuse() {
    let mut proxy = FaultProxy::new(start_echo_server(b'b'));
    let balancer = FaultProxy::balancing(vec![start_echo_server(b'a'), proxy.port(), start_echo_server(b'c')]);
    let greetings =
        || -> Vec<u8> { (0..6).flat_map(|_| read_bytes(&connect(balancer.port()).unwrap(), 1).unwrap()).collect() };
    assert_eq!(greetings(), b"abcabc");
    proxy.disconnect();
    assert_eq!(greetings(), b"accacc");
    proxy.restore();
    assert_eq!(greetings(), b"abcabc");
}
