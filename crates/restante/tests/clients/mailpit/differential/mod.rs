//! The same mails into Mailpit and into Restante, and every answer compared field by field. Differences that are intended are
//! listed in `expected` with a reason; any other difference, and one that no longer occurs, fails the test.
//!
//! Needs a real Mailpit: `MAILPIT_BIN` is its path. Without it the test is skipped.

pub(crate) mod answer;
mod compare;
mod events;
mod expected;
pub(crate) mod mails;
mod normal;
mod requests;
pub(crate) mod side;

use self::answer::{Request, send};
use self::compare::{Difference, compare};
use self::expected::Expected;
use self::normal::normal;
use self::side::Side;
use crate::mailpit::server::{MAILPIT_BIN, Program};

/// The environment variable that makes a missing Mailpit an error.
const REQUIRED: &str = "REQUIRE_MAILPIT";

/// The variables of both servers.
const VARIABLES: [(&str, &str); 4] = [
    ("MP_ENABLE_CHAOS", "true"),
    ("MP_SMTP_AUTH_ACCEPT_ANY", "true"),
    ("MP_SMTP_AUTH_ALLOW_INSECURE", "true"),
    // Mailpit requests the links of a message, and by default waits between requests to the same host.
    ("MP_DISABLE_LINK_CHECK_RATE_LIMIT", "true"),
];
/// The variables of servers below a path.
const WEB_ROOT: [(&str, &str); 1] = [("MP_WEBROOT", "/q/mailpit")];

#[test]
fn answers_are_those_of_mailpit() {
    let Some(mailpit) = Program::mailpit() else {
        return restante_testdir::skip(&format!("{MAILPIT_BIN} is not set"), REQUIRED);
    };
    let programs = [mailpit, Program::Restante];
    let mails = mails::all();
    let mut differences = Vec::new();

    let mut sides = programs.each_ref().map(|program| Side::new(program, &VARIABLES, &mails));
    for stage in requests::STAGES {
        let requests = stage(&sides[0], &mails);
        compare_answers(&mut sides, &requests, &mut differences);
    }
    let mut sides = programs.each_ref().map(|program| Side::new(program, &WEB_ROOT, &mails[..0]));
    compare_answers(&mut sides, &requests::in_empty_store(), &mut differences);
    let html = mails::with_html_and_picture();
    let mut sides = programs.each_ref().map(|program| Side::new(program, &WEB_ROOT, &html));
    compare_answers(&mut sides, &requests::below_web_root(), &mut differences);
    let steps = programs.each_ref().map(|program| events::steps(program, &VARIABLES));
    events::compare_steps(steps, &mut differences);

    report(&differences);
}

fn compare_answers(sides: &mut [Side; 2], requests: &[Request], differences: &mut Vec<Difference>) {
    for request in requests {
        let [one, other] = sides.each_mut().map(|side| {
            let mut answer = send(side, request);
            side.name_new_message(&mut answer);
            side.replace_sizes(request, &mut answer);
            answer
        });
        compare(&request.to_string(), &normal(request, one), &normal(request, other), differences);
    }
}

/// Prints the differences that are expected, and fails if there is another one, or if an expected one did not occur.
fn report(differences: &[Difference]) {
    let mut unexpected: Vec<&Difference> = differences.iter().collect();
    let mut missing = Vec::new();
    for Expected { reason, places } in expected::differences() {
        let mut count = 0;
        for place in *places {
            let before = unexpected.len();
            unexpected.retain(|difference| !difference.is_at(place));
            count += before - unexpected.len();
            if before == unexpected.len() {
                missing.push(place);
            }
        }
        println!("{count:4} {reason}");
    }
    for difference in &unexpected {
        eprintln!("unexpected: {difference}");
    }
    for place in &missing {
        eprintln!("no longer a difference: {place:?}");
    }
    let count = (unexpected.len(), missing.len());
    assert_eq!(count, (0, 0), "unexpected differences, and expected ones that did not occur");
}
