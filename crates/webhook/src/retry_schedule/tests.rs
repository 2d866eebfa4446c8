//! Tests of the retry schedule with a simulated clock.

use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// A schedule with a clock in seconds.
struct TestSchedule {
    schedule: RetrySchedule,
    start: Instant,
}

impl TestSchedule {
    fn new(rows: Range<i64>) -> Self {
        let mut test = Self { schedule: RetrySchedule::default(), start: Instant::now() };
        for row in rows {
            let payload = Arc::new(Payload { webhook_id: String::new(), occurred_at_millis: 0, body: String::new() });
            let deadline = test.at(1000);
            test.schedule.push(QueuedEvent { row_id: row, payload, deadline, failures: 0 });
        }
        test
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    fn send(&mut self, second: u64) -> Attempt {
        match self.next(second) {
            NextAction::Send(attempt) => attempt,
            action => panic!("{action:?}"),
        }
    }

    fn next(&mut self, second: u64) -> NextAction {
        let mut expired = Vec::new();
        let next = self.schedule.next_action(self.at(second), &mut expired);
        assert!(expired.is_empty(), "{expired:?}");
        next
    }

    fn report(&mut self, attempt: Attempt, second: u64, result: &AttemptResult) -> AttemptReport {
        self.schedule.record_result(attempt, result, self.at(second), &Backoff::DEFAULT, 0)
    }

    /// Sends the next event and reports `result` for it.
    fn step(&mut self, second: u64, result: &AttemptResult) -> (i64, Option<TargetChange>) {
        let attempt = self.send(second);
        let row = attempt.event.row_id;
        (row, self.report(attempt, second, result).target_change)
    }
}

fn retry(scope: FailureScope, retry_after: Option<u64>) -> AttemptResult {
    AttemptResult::Retry { scope, retry_after: retry_after.map(Duration::from_secs), cause: String::new() }
}

#[test]
fn rejected_event_waits_alone() {
    let mut test = TestSchedule::new(0..2);
    let rejected = retry(FailureScope::Event, None);
    assert_eq!(test.step(0, &rejected), (0, None));
    assert_eq!(test.step(0, &AttemptResult::Delivered), (1, None));
    assert!(matches!(test.next(0), NextAction::WaitUntil(at) if at == test.at(1)));
    assert_eq!(test.step(1, &rejected), (0, None));
    assert!(matches!(test.next(2), NextAction::WaitUntil(at) if at == test.at(3)));
    assert_eq!(test.step(3, &AttemptResult::Delivered), (0, None));
    assert!(matches!(test.next(4), NextAction::Idle));
}

#[test]
fn unavailable_target_is_probed_with_one_event_at_a_time() {
    let mut test = TestSchedule::new(0..4);
    let down = retry(FailureScope::Target, None);
    assert_eq!(test.step(0, &down), (0, Some(TargetChange::Paused)));
    assert!(matches!(test.next(0), NextAction::WaitUntil(at) if at == test.at(1)));
    let probe = test.send(1);
    assert_eq!(probe.event.row_id, 1);
    assert!(matches!(test.next(1), NextAction::WaitUntil(at) if at == test.at(1001)), "the probe is still in progress");
    assert_eq!(test.report(probe, 1, &down).target_change, None);
    assert!(matches!(test.next(1), NextAction::WaitUntil(at) if at == test.at(3)), "the second pause is longer");
    assert_eq!(test.step(3, &AttemptResult::Delivered), (2, Some(TargetChange::Resumed)));
    let rows = [0, 1, 2].map(|_| test.step(3, &AttemptResult::Delivered).0);
    assert_eq!(rows, [0, 3, 1]);
}

#[test]
fn attempts_started_before_a_pause_do_not_change_it() {
    let mut test = TestSchedule::new(0..4);
    let down = retry(FailureScope::Target, None);
    let (first, second, third) = (test.send(0), test.send(0), test.send(0));
    assert_eq!(test.report(first, 0, &down).target_change, Some(TargetChange::Paused));
    assert_eq!(test.report(second, 0, &down).target_change, None);
    assert_eq!(test.report(third, 0, &AttemptResult::Delivered).target_change, None);
    assert!(matches!(test.next(0), NextAction::WaitUntil(at) if at == test.at(1)));
}

#[test]
fn pause_lasts_as_long_as_requested() {
    let mut test = TestSchedule::new(0..2);
    assert_eq!(test.step(0, &retry(FailureScope::Target, Some(100))), (0, Some(TargetChange::Paused)));
    assert!(matches!(test.next(99), NextAction::WaitUntil(at) if at == test.at(100)));
    assert_eq!(
        test.step(100, &retry(FailureScope::Event, None)),
        (1, Some(TargetChange::Resumed)),
        "the target responds again"
    );
}

#[test]
fn last_attempt_is_at_the_deadline() {
    let mut test = TestSchedule::new(0..1);
    let first = test.send(0);
    assert!(matches!(test.report(first, 0, &retry(FailureScope::Event, Some(3600))).outcome, Outcome::Requeued));
    assert!(
        matches!(test.next(1), NextAction::WaitUntil(at) if at == test.at(1000)),
        "the requested delay ends after the deadline"
    );
    let last = test.send(1000);
    let report = test.report(last, 1000, &retry(FailureScope::Event, None));
    assert!(matches!(report.outcome, Outcome::GivenUp(QueuedEvent { row_id: 0, .. })));
    assert_eq!(test.schedule.len(), 0);
}

#[test]
fn untried_event_is_tried_once_after_its_deadline() {
    let mut test = TestSchedule::new(0..1);
    let attempt = test.send(5000);
    let report = test.report(attempt, 5000, &retry(FailureScope::Event, None));
    assert!(matches!(report.outcome, Outcome::GivenUp(QueuedEvent { row_id: 0, .. })));
}

#[test]
fn requested_pause_is_limited_by_the_deadline() {
    let mut test = TestSchedule::new(0..2);
    assert_eq!(test.step(0, &retry(FailureScope::Target, Some(3600))), (0, Some(TargetChange::Paused)));
    assert!(matches!(test.next(1), NextAction::WaitUntil(at) if at == test.at(1000)));
    assert_eq!(test.step(1000, &AttemptResult::Delivered), (0, Some(TargetChange::Resumed)), "it is the last attempt");
    assert_eq!(test.step(1000, &AttemptResult::Delivered), (1, None));
}

#[test]
fn paused_events_expire() {
    let mut test = TestSchedule::new(0..3);
    let down = retry(FailureScope::Target, None);
    let first = test.send(999);
    assert_eq!(test.report(first, 999, &down).target_change, Some(TargetChange::Paused));
    let probe = test.send(1000);
    let mut expired = Vec::new();
    assert!(
        matches!(test.schedule.next_action(test.at(1000), &mut expired), NextAction::WaitUntil(at) if at == test.at(1001))
    );
    assert!(expired.is_empty());
    assert!(matches!(test.schedule.next_action(test.at(1001), &mut expired), NextAction::Idle));
    assert_eq!((expired.len(), test.schedule.len()), (2, 0), "while the probe is in progress");
    assert!(matches!(test.report(probe, 1002, &down).outcome, Outcome::GivenUp(_)));
}

#[test]
fn retries_and_new_events_alternate() {
    let mut test = TestSchedule::new(0..4);
    let rejected = retry(FailureScope::Event, None);
    for row in 0..4 {
        assert_eq!(test.step(0, &rejected).0, row);
    }
    for row in 4..8 {
        let deadline = test.at(1000);
        let payload = Arc::new(Payload { webhook_id: String::new(), occurred_at_millis: 0, body: String::new() });
        test.schedule.push(QueuedEvent { row_id: row, payload, deadline, failures: 0 });
    }
    let rows: Vec<i64> = (0..8).map(|_| test.step(1, &AttemptResult::Delivered).0).collect();
    assert_eq!(rows, [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn only_one_event_is_ready_until_the_pause_ends() {
    let mut test = TestSchedule::new(0..4);
    let (first, second) = (test.at(0), test.at(1));
    assert_eq!(test.schedule.ready_count(first), 4);
    assert_eq!(test.step(0, &retry(FailureScope::Target, None)).1, Some(TargetChange::Paused));
    assert_eq!((test.schedule.ready_count(first), test.schedule.ready_count(second)), (0, 1));
    let probe = test.send(1);
    assert_eq!(test.schedule.ready_count(second), 0);
    assert_eq!(test.report(probe, 1, &AttemptResult::Delivered).target_change, Some(TargetChange::Resumed));
    assert_eq!(test.schedule.ready_count(second), 3);
}

/// A step of the property test.
#[derive(Clone, Debug)]
enum Step {
    Send,
    /// One of the attempts in progress ends. The number selects it.
    End(usize, AttemptResult),
    /// This number of seconds passes.
    AdvanceClock(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let result = prop_oneof![
        3 => Just(AttemptResult::Delivered),
        1 => Just(AttemptResult::PermanentFailure(String::new())),
        2 => Just(retry(FailureScope::Event, None)),
        2 => Just(retry(FailureScope::Target, None)),
        1 => Just(retry(FailureScope::Target, Some(30))),
    ];
    prop_oneof![
        4 => Just(Step::Send),
        4 => (any::<usize>(), result).prop_map(|(selector, result)| Step::End(selector, result)),
        1 => (0_u64..20).prop_map(Step::AdvanceClock),
    ]
}

/// Each case has thousands of steps, so the default number of cases is low.
fn proptest_config() -> ProptestConfig {
    let default = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_some() { default } else { ProptestConfig { cases: 64, ..default } }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn every_event_ends_once_and_there_is_one_probe_at_a_time(steps in prop::collection::vec(step(), 0..200)) {
        let mut test = TestSchedule::new(0..20);
        let (mut second, mut in_flight, mut ended) = (0, Vec::<Attempt>::new(), Vec::new());
        // At the end the target accepts everything that is left.
        let recovery =
            (0..2000).flat_map(|_| [Step::Send, Step::End(0, AttemptResult::Delivered), Step::AdvanceClock(1)]);
        for step in steps.into_iter().chain(recovery) {
            match step {
                Step::AdvanceClock(seconds) => second += seconds,
                Step::Send => {
                    let mut expired = Vec::new();
                    if let NextAction::Send(attempt) = test.schedule.next_action(test.at(second), &mut expired) {
                        in_flight.push(attempt);
                    }
                    ended.extend(expired.iter().map(|event| event.row_id));
                }
                Step::End(_, _) if in_flight.is_empty() => {}
                Step::End(selector, result) => {
                    let attempt = in_flight.swap_remove(selector % in_flight.len());
                    match test.report(attempt, second, &result).outcome {
                        Outcome::Delivered(event) | Outcome::GivenUp(event) => ended.push(event.row_id),
                        Outcome::Requeued => {}
                    }
                }
            }
            prop_assert!(in_flight.iter().filter(|attempt| attempt.is_probe).count() <= 1);
            prop_assert_eq!(test.schedule.len() + in_flight.len() + ended.len(), 20);
        }
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..20).collect::<Vec<_>>());
    }
}
