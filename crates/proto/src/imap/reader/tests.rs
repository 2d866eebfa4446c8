use super::*;

const LIMITS: Limits = Limits { max_message_bytes: 1_000, is_authenticated: true };
const BEFORE_LOGIN: Limits = Limits { is_authenticated: false, ..LIMITS };

/// How the input reaches the reader.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Cut {
    Whole,
    EveryOctet,
    /// At pseudo-random places for this seed.
    Random(u64),
}

/// Reads the input until its end, or until the session must close. Messages are accepted.
pub(in super::super) fn read_all(input: &[u8], limits: Limits, cut: Cut) -> Vec<Received> {
    let mut reader = CommandReader::default();
    let mut all = Vec::new();
    let mut random = match cut {
        Cut::Random(seed) => seed,
        Cut::Whole | Cut::EveryOctet => 0,
    };
    let (mut start, mut end) = (0, 0);
    loop {
        let (consumed, received) = reader.read(&input[start..end], limits);
        start += consumed;
        match received {
            Received::Incomplete if end == input.len() => return all,
            Received::Incomplete => {
                assert_eq!(start, end, "the input is consumed");
                end += match cut {
                    Cut::Whole => input.len(),
                    Cut::EveryOctet => 1,
                    Cut::Random(_) => {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        usize::try_from(random >> 58).unwrap() + 1
                    }
                };
                end = end.min(input.len());
            }
            Received::Message { bytes, .. } => {
                assert!(bytes <= limits.max_message_bytes);
                reader.accept();
                all.push(received);
            }
            Received::Foreign(_) | Received::LiteralTooLarge { must_close: true, .. } => {
                all.push(received);
                return all;
            }
            Received::Command(_) => {
                assert!(reader.text.is_empty() && reader.message.is_none());
                all.push(received);
            }
            Received::Continuation | Received::TooLong { .. } | Received::LiteralTooLarge { .. } => all.push(received),
        }
        assert!(reader.text.len() <= limits.max_text_bytes());
    }
}

fn command(text: &str) -> Received {
    Received::Command(CommandText { text: text.into(), message: None })
}

fn append(text: &str, offset: usize, bytes: &'static [u8]) -> Received {
    let message = Some(Message { offset, bytes: bytes.into() });
    Received::Command(CommandText { text: text.into(), message })
}

fn message(tag: &str, bytes: usize, is_synchronizing: bool) -> Received {
    Received::Message { tag: tag.to_owned(), bytes, is_synchronizing }
}

fn too_long(tag: Option<&str>) -> Received {
    Received::TooLong { tag: tag.map(str::to_owned) }
}

fn too_large(tag: Option<&str>, is_message: bool, must_close: bool) -> Received {
    Received::LiteralTooLarge { tag: tag.map(str::to_owned), is_message, must_close }
}

fn check(limits: Limits, input: &str, expected: &[Received]) {
    let input = input.as_bytes();
    let shown = String::from_utf8_lossy(&input[..input.len().min(100)]);
    for cut in [Cut::Whole, Cut::EveryOctet, Cut::Random(1), Cut::Random(2)] {
        assert_eq!(read_all(input, limits, cut), expected, "{cut:?} {shown}");
    }
}

#[test]
fn finds_the_end_of_commands() {
    use Received::Continuation;
    let table: &[(&str, &[Received])] = &[
        ("", &[]),
        ("a NOOP", &[]),
        ("a NOOP\r", &[]),
        ("a NOOP\r\nb NOOP\n", &[command("a NOOP"), command("b NOOP")]),
        ("\r\na NOOP \r\n", &[command(""), command("a NOOP ")]),
        (
            "a LOGIN {1}\r\nb {2+}\r\nc\n\r\nd NOOP\r\n",
            &[Continuation, command("a LOGIN {1}\r\nb {2+}\r\nc\n"), command("d NOOP")],
        ),
        ("a x {0}\r\n\r\n", &[Continuation, command("a x {0}\r\n")]),
        ("a x {5}\n{1}\r\n\r\n", &[Continuation, command("a x {5}\n{1}\r\n")]),
        ("a x \"{1}\"\r\n", &[command("a x \"{1}\"")]),
        (
            "a APPEND x {3}\r\n\r\n\n\r\nb NOOP\r\n",
            &[message("a", 3, true), append("a APPEND x {3}\r\n", 16, b"\r\n\n"), command("b NOOP")],
        ),
        (
            "a append {1}\r\nx (y) ~{3+}\r\nabc)\r\n",
            &[Continuation, message("a", 3, false), append("a append {1}\r\nx (y) ~{3+}\r\n)", 27, b"abc")],
        ),
        ("a APPEND x {0+}\r\n\r\n", &[message("a", 0, false), append("a APPEND x {0+}\r\n", 17, b"")]),
        (
            "a APPEND x {1+}\r\ny {2+}\r\nzz\r\n",
            &[message("a", 1, false), append("a APPEND x {1+}\r\n {2+}\r\nzz", 17, b"y")],
        ),
        ("a APPENDX x {1+}\r\ny\r\n", &[command("a APPENDX x {1+}\r\ny")]),
        ("GET / HTTP/1.1\r\na NOOP\r\n", &[Received::Foreign(ForeignInput::Http)]),
        ("a NOOP\r\npost x", &[command("a NOOP"), Received::Foreign(ForeignInput::Http)]),
        ("a x {6+}\r\nGET x \r\n", &[command("a x {6+}\r\nGET x ")]),
    ];
    for (input, expected) in table {
        check(LIMITS, input, expected);
    }
    check(BEFORE_LOGIN, "a APPEND x {1}\r\ny\r\n", &[Continuation, command("a APPEND x {1}\r\ny")]);
    check(BEFORE_LOGIN, "\x16\x03\x01", &[Received::Foreign(ForeignInput::Tls)]);
}

#[test]
fn long_commands_are_ignored() {
    let long = "x".repeat(MAX_TEXT_BYTES);
    let longest = format!("a {}", &long[4..]);
    let check = |input: &str, expected: &[Received]| check(LIMITS, &format!("{input}b NOOP\r\n"), expected);
    check(&format!("{longest}\r\n"), &[command(&longest), command("b NOOP")]);
    check(&format!("{longest}x\r\n"), &[too_long(Some("a")), command("b NOOP")]);
    check(&format!("{long}x\r\n"), &[too_long(None), command("b NOOP")]);
    check(&format!("{longest}{{7+}}\r\na NOOP\n\r\n"), &[too_long(Some("a")), command("b NOOP")]);
    check(&format!("{longest}{long} ~{{7+}}\na NOOP\n {{1+}}\r\n\n\r\n"), &[too_long(Some("a")), command("b NOOP")]);
    // The client does not send the literal after the reply.
    check(&format!("{longest}x {{7}}\r\n"), &[too_long(Some("a")), command("b NOOP")]);
    check(&format!("{longest}x {{99999999999+}}\r\n"), &[too_long(Some("a")), too_large(None, false, true)]);
    let literals = "{0+}\r\n".repeat(MAX_LITERALS);
    check(&format!("a x {literals}\r\n"), &[command(&format!("a x {literals}")), command("b NOOP")]);
    check(&format!("a x {literals}{{3+}}\r\n\n\n\n\r\n"), &[too_long(Some("a")), command("b NOOP")]);
    let long = &long[..MAX_TEXT_BYTES_BEFORE_LOGIN];
    super::tests::check(BEFORE_LOGIN, &format!("a {long}\r\nb NOOP\r\n"), &[too_long(Some("a")), command("b NOOP")]);
}

#[test]
fn large_literals_are_ignored() {
    let check = |limits, input: &str, expected: &[Received]| check(limits, &format!("{input}b NOOP\r\n"), expected);
    let noop = || command("b NOOP");
    let large = "\n".repeat(20_000);
    check(LIMITS, "a APPEND x {1001}\r\n", &[too_large(Some("a"), true, false), noop()]);
    check(LIMITS, &format!("a APPEND x {{20000+}}\r\n{large})\r\n"), &[too_large(Some("a"), true, false), noop()]);
    check(LIMITS, "a LOGIN {16385}\r\n", &[too_large(Some("a"), false, false), noop()]);
    check(LIMITS, &format!("a LOGIN {{20000+}}\r\n{large}\r\n"), &[too_large(Some("a"), false, false), noop()]);
    check(BEFORE_LOGIN, "a LOGIN {4097}\r\n", &[too_large(Some("a"), false, false), noop()]);
    check(BEFORE_LOGIN, "a APPEND x {4097}\r\n", &[too_large(Some("a"), true, false), noop()]);
    check(BEFORE_LOGIN, "a LOGIN {1048577+}\r\n", &[too_large(Some("a"), false, true)]);
    check(LIMITS, "a APPEND x {4294967296+}\r\n", &[too_large(Some("a"), true, true)]);
    check(LIMITS, "a APPEND x {99999999999999999999}\r\n", &[too_large(Some("a"), true, false), noop()]);
    check(LIMITS, "+ LOGIN {16385}\r\n", &[too_large(None, false, false), noop()]);
    // Several small literals exceed the limit of the command.
    let small = format!("{{16000+}}\r\n{} ", &large[..16_000]);
    let many = format!("a SEARCH {}", small.repeat(4));
    check(LIMITS, &format!("{many}{small}\r\n"), &[too_large(Some("a"), false, false), noop()]);
}

#[test]
fn rejected_messages_are_ignored() {
    let table: &[(&[u8], &[u8])] = &[
        (b"a APPEND x {6}\r\n", b""),
        (b"a APPEND x {6+}\r\n", b"c x\r\nd\r\n"),
        (b"a APPEND x {6+}\r\n", b"c x\r\nd {3+}\r\n\r\n\n\r\n"),
    ];
    for (start, rest) in table {
        let mut reader = CommandReader::default();
        let (consumed, received) = reader.read(start, LIMITS);
        assert!(consumed == start.len() && matches!(received, Received::Message { bytes: 6, .. }), "{received:?}");
        assert!(matches!(reader.read(rest, LIMITS), (0, Received::Message { .. })), "the session has to decide");
        reader.reject();
        let input = [rest, &b"b NOOP\r\n"[..]].concat();
        assert_eq!(reader.read(&input, LIMITS), (input.len(), command("b NOOP")));
    }
}
