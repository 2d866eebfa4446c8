//! Tests of the retry schedule with a simulated clock.

use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// A schedule with a clock in seconds.
struct Table {
    line: RetrySchedule,
    start: Instant,
}

impl Table {
    fn new(rows: Range<i64>) -> Self {
        let mut table = Self { line: RetrySchedule::default(), start: Instant::now() };
        for row in rows {
            let notice = Arc::new(Payload { webhook_id: String::new(), occurred_at_millis: 0, body: String::new() });
            let deadline = table.at(1000);
            table.line.push(QueuedEvent { row_id: row, payload: notice, deadline, failures: 0 });
        }
        table
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    fn send(&mut self, second: u64) -> Attempt {
        match self.next(second) {
            NextAction::Send(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    fn next(&mut self, second: u64) -> NextAction {
        let mut overdue = Vec::new();
        let next = self.line.next_action(self.at(second), &mut overdue);
        assert!(overdue.is_empty(), "{overdue:?}");
        next
    }

    fn report(&mut self, attempt: Attempt, second: u64, verdict: &AttemptResult) -> AttemptReport {
        self.line.record_result(attempt, verdict, self.at(second), &Backoff::DEFAULT, 0)
    }

    /// Sends the next event and reports `result` for it.
    fn step(&mut self, second: u64, verdict: &AttemptResult) -> (i64, Option<TargetChange>) {
        let attempt = self.send(second);
        let row = attempt.item.row_id;
        (row, self.report(attempt, second, verdict).target_change)
    }
}

fn again(whose: FailureScope, wish: Option<u64>) -> AttemptResult {
    AttemptResult::Retry { scope: whose, retry_after: wish.map(Duration::from_secs), cause: String::new() }
}

#[test]
fn an_event_that_is_not_taken_waits_by_itself() {
    let mut table = Table::new(0..2);
    let refused = again(FailureScope::Event, None);
    assert_eq!(table.step(0, &refused), (0, None));
    assert_eq!(table.step(0, &AttemptResult::Delivered), (1, None));
    assert!(matches!(table.next(0), NextAction::WaitUntil(at) if at == table.at(1)));
    assert_eq!(table.step(1, &refused), (0, None));
    assert!(matches!(table.next(2), NextAction::WaitUntil(at) if at == table.at(3)));
    assert_eq!(table.step(3, &AttemptResult::Delivered), (0, None));
    assert!(matches!(table.next(4), NextAction::Idle));
}

#[test]
fn a_target_in_trouble_is_probed_with_one_event_at_a_time() {
    let mut table = Table::new(0..4);
    let down = again(FailureScope::Target, None);
    assert_eq!(table.step(0, &down), (0, Some(TargetChange::Paused)));
    assert!(matches!(table.next(0), NextAction::WaitUntil(at) if at == table.at(1)));
    let probe = table.send(1);
    assert_eq!(probe.item.row_id, 1);
    assert!(matches!(table.next(1), NextAction::WaitUntil(at) if at == table.at(1001)), "the probe is still under way");
    assert_eq!(table.report(probe, 1, &down).target_change, None);
    assert!(matches!(table.next(1), NextAction::WaitUntil(at) if at == table.at(3)), "the second pause is longer");
    assert_eq!(table.step(3, &AttemptResult::Delivered), (2, Some(TargetChange::Resumed)));
    let rows = [0, 1, 2].map(|_| table.step(3, &AttemptResult::Delivered).0);
    assert_eq!(rows, [0, 3, 1]);
}

#[test]
fn attempts_that_began_before_a_pause_do_not_change_it() {
    let mut table = Table::new(0..4);
    let down = again(FailureScope::Target, None);
    let (first, second, third) = (table.send(0), table.send(0), table.send(0));
    assert_eq!(table.report(first, 0, &down).target_change, Some(TargetChange::Paused));
    assert_eq!(table.report(second, 0, &down).target_change, None);
    assert_eq!(table.report(third, 0, &AttemptResult::Delivered).target_change, None);
    assert!(matches!(table.next(0), NextAction::WaitUntil(at) if at == table.at(1)));
}

#[test]
fn a_target_is_left_alone_as_long_as_it_asks() {
    let mut table = Table::new(0..2);
    assert_eq!(table.step(0, &again(FailureScope::Target, Some(100))), (0, Some(TargetChange::Paused)));
    assert!(matches!(table.next(99), NextAction::WaitUntil(at) if at == table.at(100)));
    assert_eq!(
        table.step(100, &again(FailureScope::Event, None)),
        (1, Some(TargetChange::Resumed)),
        "it answers again"
    );
}

#[test]
fn an_event_has_its_last_attempt_when_its_time_is_over() {
    let mut table = Table::new(0..1);
    let first = table.send(0);
    assert!(matches!(table.report(first, 0, &again(FailureScope::Event, Some(3600))).outcome, Outcome::Requeued));
    assert!(
        matches!(table.next(1), NextAction::WaitUntil(at) if at == table.at(1000)),
        "it asked for more than there is"
    );
    let last = table.send(1000);
    let report = table.report(last, 1000, &again(FailureScope::Event, None));
    assert!(matches!(report.outcome, Outcome::GivenUp(QueuedEvent { row_id: 0, .. })));
    assert_eq!(table.line.len(), 0);
}

#[test]
fn an_event_that_was_never_tried_is_tried_once_however_old_it_is() {
    let mut table = Table::new(0..1);
    let attempt = table.send(5000);
    let report = table.report(attempt, 5000, &again(FailureScope::Event, None));
    assert!(matches!(report.outcome, Outcome::GivenUp(QueuedEvent { row_id: 0, .. })));
}

#[test]
fn a_target_is_not_left_alone_for_longer_than_an_event_has_time() {
    let mut table = Table::new(0..2);
    assert_eq!(table.step(0, &again(FailureScope::Target, Some(3600))), (0, Some(TargetChange::Paused)));
    assert!(matches!(table.next(1), NextAction::WaitUntil(at) if at == table.at(1000)));
    assert_eq!(table.step(1000, &AttemptResult::Delivered), (0, Some(TargetChange::Resumed)), "it was its last chance");
    assert_eq!(table.step(1000, &AttemptResult::Delivered), (1, None));
}

#[test]
fn events_are_given_up_in_a_pause_when_their_time_is_over() {
    let mut table = Table::new(0..3);
    let down = again(FailureScope::Target, None);
    let first = table.send(999);
    assert_eq!(table.report(first, 999, &down).target_change, Some(TargetChange::Paused));
    let probe = table.send(1000);
    let mut overdue = Vec::new();
    assert!(
        matches!(table.line.next_action(table.at(1000), &mut overdue), NextAction::WaitUntil(at) if at == table.at(1001))
    );
    assert!(overdue.is_empty());
    assert!(matches!(table.line.next_action(table.at(1001), &mut overdue), NextAction::Idle));
    assert_eq!((overdue.len(), table.line.len()), (2, 0), "while the probe is still under way");
    assert!(matches!(table.report(probe, 1002, &down).outcome, Outcome::GivenUp(_)));
}

#[test]
fn events_that_fail_and_events_that_are_new_take_turns() {
    let mut table = Table::new(0..4);
    let refused = again(FailureScope::Event, None);
    for row in 0..4 {
        assert_eq!(table.step(0, &refused).0, row);
    }
    for row in 4..8 {
        let deadline = table.at(1000);
        let notice = Arc::new(Payload { webhook_id: String::new(), occurred_at_millis: 0, body: String::new() });
        table.line.push(QueuedEvent { row_id: row, payload: notice, deadline, failures: 0 });
    }
    let rows: Vec<i64> = (0..8).map(|_| table.step(1, &AttemptResult::Delivered).0).collect();
    assert_eq!(rows, [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn a_pause_leaves_work_for_one_and_its_end_for_all() {
    let mut table = Table::new(0..4);
    let (first, second) = (table.at(0), table.at(1));
    assert_eq!(table.line.ready_count(first), 4);
    assert_eq!(table.step(0, &again(FailureScope::Target, None)).1, Some(TargetChange::Paused));
    assert_eq!((table.line.ready_count(first), table.line.ready_count(second)), (0, 1));
    let probe = table.send(1);
    assert_eq!(table.line.ready_count(second), 0);
    assert_eq!(table.report(probe, 1, &AttemptResult::Delivered).target_change, Some(TargetChange::Resumed));
    assert_eq!(table.line.ready_count(second), 3);
}

/// A step of the property test.
#[derive(Clone, Debug)]
enum Step {
    Send,
    /// One of the attempts in progress ends.
    End(usize, AttemptResult),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![
        3 => Just(AttemptResult::Delivered),
        1 => Just(AttemptResult::PermanentFailure(String::new())),
        2 => Just(again(FailureScope::Event, None)),
        2 => Just(again(FailureScope::Target, None)),
        1 => Just(again(FailureScope::Target, Some(30))),
    ];
    prop_oneof![
        4 => Just(Step::Send),
        4 => (any::<usize>(), verdict).prop_map(|(which, verdict)| Step::End(which, verdict)),
        1 => (0_u64..20).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_event_ends_once_and_a_target_in_trouble_is_probed_by_one(steps in prop::collection::vec(step(), 0..200)) {
        let mut table = Table::new(0..20);
        let (mut second, mut underway, mut ended) = (0, Vec::<Attempt>::new(), Vec::new());
        // At the end the target accepts everything that is left.
        let good_end = (0..2000).flat_map(|_| [Step::Send, Step::End(0, AttemptResult::Delivered), Step::Pass(1)]);
        for step in steps.into_iter().chain(good_end) {
            match step {
                Step::Pass(seconds) => second += seconds,
                Step::Send => {
                    let mut overdue = Vec::new();
                    if let NextAction::Send(attempt) = table.line.next_action(table.at(second), &mut overdue) {
                        underway.push(attempt);
                    }
                    ended.extend(overdue.iter().map(|item| item.row_id));
                }
                Step::End(_, _) if underway.is_empty() => {}
                Step::End(which, verdict) => {
                    let attempt = underway.swap_remove(which % underway.len());
                    match table.report(attempt, second, &verdict).outcome {
                        Outcome::Delivered(item) | Outcome::GivenUp(item) => ended.push(item.row_id),
                        Outcome::Requeued => {}
                    }
                }
            }
            prop_assert!(underway.iter().filter(|attempt| attempt.is_probe).count() <= 1);
            prop_assert_eq!(table.line.len() + underway.len() + ended.len(), 20);
        }
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..20).collect::<Vec<_>>());
    }
}
