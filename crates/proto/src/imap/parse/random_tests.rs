//! Random input: nothing panics, and the requests do not depend on how the input is split.

use proptest::prelude::*;

use super::super::reader::tests::{Cut, read_all};
use super::super::reader::{Limits, Received};
use super::{ParseError, parse};
use crate::imap::command::Request;

/// Parts of commands, some of them invalid.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "a1 ",
        "b ",
        "UID ",
        "LOGIN ",
        "SELECT ",
        "LIST ",
        "STATUS ",
        "APPEND ",
        "SEARCH ",
        "SORT ",
        "THREAD ",
        "FETCH ",
        "STORE ",
        "COPY ",
        "ID ",
        "ENABLE ",
        "INBOX ",
        "x ",
        "\"x\" ",
        "\"",
        "\\",
        "\\Seen",
        "(",
        ")",
        " ",
        "1:*",
        "$",
        ",",
        "BODY[",
        "]",
        "<0.5>",
        "HEADER.FIELDS ",
        "NOT ",
        "OR ",
        "SINCE ",
        "1-Feb-1994",
        "\"1-Feb-1994 00:00:00 +0000\" ",
        "FROM ",
        "{1}\r\n",
        "{3+}\r\n",
        "~{2+}\r\n",
        "{2000}\r\n",
        "{2000+}\r\n",
        "{99999999999+}\r\n",
        "&APw-",
        "ü",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    let end = prop_oneof![9 => Just(&b"\r\n"[..]), 1 => Just(&b"\n"[..]), 1 => Just(&b"\r"[..])];
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    let long = prop_oneof![9 => 1..500_usize, 1 => Just(17_000)].prop_map(|length| vec![b'x'; length]);
    prop_oneof![30 => known, 4 => end.prop_map(<[u8]>::to_vec), 2 => noise, 1 => long]
}

/// The result of each command in the input.
fn outcomes(input: &[u8], limits: Limits, cut: Cut) -> Vec<Result<Result<Request, ParseError>, Received>> {
    let parse_command = |received| match received {
        Received::Command(command) => Ok(parse(&command, input.len().is_multiple_of(2))),
        other => Err(other),
    };
    read_all(input, limits, cut).into_iter().map(parse_command).collect()
}

proptest! {
    #[test]
    fn requests_do_not_depend_on_how_the_input_is_split(
        is_authenticated: bool,
        fragments in prop::collection::vec(fragment(), 0..60),
        seed: u64,
    ) {
        let limits = Limits { max_message_bytes: 1_000, is_authenticated };
        let input = fragments.concat();
        let expected = outcomes(&input, limits, Cut::Whole);
        prop_assert_eq!(&outcomes(&input, limits, Cut::EveryOctet), &expected);
        prop_assert_eq!(&outcomes(&input, limits, Cut::Random(seed)), &expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(is_authenticated: bool, input in prop::collection::vec(any::<u8>(), 0..2_000), seed: u64) {
        let limits = Limits { max_message_bytes: 1_000, is_authenticated };
        prop_assert_eq!(outcomes(&input, limits, Cut::Whole), outcomes(&input, limits, Cut::Random(seed)));
    }

    #[test]
    fn arbitrary_arguments_never_panic(verb in prop::sample::select(VERBS), arguments in prop::collection::vec(any::<u8>(), 0..200)) {
        let limits = Limits { max_message_bytes: 1_000, is_authenticated: true };
        let input = [b"a ", verb.as_bytes(), b" ", &arguments, b"\r\n"].concat();
        prop_assert_eq!(outcomes(&input, limits, Cut::Whole), outcomes(&input, limits, Cut::EveryOctet));
    }
}

const VERBS: &[&str] = &[
    "LOGIN",
    "AUTHENTICATE",
    "ID",
    "SELECT",
    "CREATE (USE",
    "LIST",
    "LIST (",
    "LSUB",
    "STATUS x (",
    "APPEND x",
    "APPEND x \"",
    "APPEND x (",
    "SEARCH",
    "SEARCH SINCE",
    "SORT (",
    "THREAD",
    "FETCH 1",
    "FETCH 1 (",
    "FETCH 1 BODY[",
    "STORE 1",
    "COPY",
];
