//! The output of `html-check`.

use serde_json::Value;

use super::fake::{CannedResponse, FakeServer};
use crate::CommandError;
use crate::output::OutputStyle;

const RESPONSES: &[CannedResponse] = &[
    (
        "GET /api/v2/mailbox/ann/latest/html-check",
        200,
        r#"{"score":{"supported":83.25,"partial":6.75,"unsupported":10},"features":[{"slug":"css-gap","title":"gap, column-gap","count":7,"lines":[1,2,3,4,5,6],"score":{"supported":61.9,"partial":0,"unsupported":38.1}},{"slug":"html-p","title":"<p> element","count":2,"lines":[9],"score":{"supported":100,"partial":0,"unsupported":0}}]}"#,
    ),
    (
        "GET /api/v2/messages/7/html-check",
        200,
        r#"{"score":{"supported":100,"partial":0,"unsupported":0},"features":[]}"#,
    ),
    ("GET /api/v2/messages/8/html-check", 404, r#"{"detail":"The message has no HTML."}"#),
];

#[test]
fn prints_the_check_of_html() {
    let server = FakeServer::new(RESPONSES);
    let terminal = "83.2 % supported, 6.8 % partially, 10.0 % not supported\n\
                    FEATURE          SUPPORT  USES  LINES\n\
                    gap, column-gap     62 %     7  1,2,3,4,5,…\n";
    let (output, result) = server.run(OutputStyle::terminal(80, false), &["html-check", "ann"]);
    assert_eq!((output.as_str(), result), (terminal, Ok(())));
    let (output, _) = server.run(OutputStyle::pipe(), &["html-check", "ann", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).ok(), serde_json::from_str(RESPONSES[0].2).ok());
}

#[test]
fn fails_below_the_minimum_score() {
    let server = FakeServer::new(RESPONSES);
    let ann = "83.2\ncss-gap\t61.9\t7\t1,2,3,4,5,6\n";
    let low = CommandError::not_found("The score of the HTML is 83.2 %, and 90 % is required.");
    let cases: &[(&[&str], &str, Result<(), CommandError>)] = &[
        (&["html-check", "ann"], ann, Ok(())),
        (&["html-check", "ann", "--min-score", "80"], ann, Ok(())),
        (&["html-check", "ann", "--min-score", "90%"], ann, Err(low)),
        (&["html-check", "--message", "7", "--min-score", "100"], "100.0\n", Ok(())),
        (&["html-check", "--message", "8"], "", Err(CommandError::not_found("The message has no HTML."))),
    ];
    for (args, output, expected) in cases {
        let (printed, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!((printed.as_str(), &result), (*output, expected), "{args:?}");
    }
}
