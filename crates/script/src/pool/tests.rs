//! Pools of workers whose jobs are made up: quick, held up, lost, or faulty. What is held up goes on when the test says so,
//! and the test waits for what has to happen, however long it takes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use super::*;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(2);

/// So short that a test can wait for it, and longer than a thread takes to start, also on a busy machine.
const SHORT: Duration = Duration::from_secs(3);

/// What can be asked of the workers.
enum Do {
    Nothing,
    /// Goes on when the other end of the channel is dropped.
    Wait(Receiver<()>),
    Panic,
    /// Spoils the tool.
    Wear,
}

/// Counts the jobs that it was used for, and itself among the tools that exist.
struct Hammer {
    jobs: usize,
    worn: bool,
    alive: Arc<AtomicUsize>,
}

impl Drop for Hammer {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

/// Where answers go.
struct Desk {
    answers: Sender<Answer>,
    gone: Arc<AtomicBool>,
}

type Answer = Result<usize, Failure>;

impl Caller for Desk {
    fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }
}

#[derive(Default)]
struct Smith {
    alive: Arc<AtomicUsize>,
    has_no_tools: Arc<AtomicBool>,
    /// Held by the test while no tool is to be made.
    forge: Arc<Mutex<()>>,
}

impl Craft for Smith {
    type Tool = Hammer;
    type Job = Do;
    type Caller = Desk;
    type Answer = usize;

    fn is_fit(&self, hammer: &Hammer) -> bool {
        !hammer.worn
    }

    fn make(&self) -> Result<Hammer, usize> {
        if self.has_no_tools.load(SeqCst) {
            return Err(0);
        }
        drop(self.forge.lock());
        self.alive.fetch_add(1, SeqCst);
        Ok(Hammer { jobs: 0, worn: false, alive: self.alive.clone() })
    }

    fn work(&self, hammer: &mut Hammer, job: Do) -> usize {
        hammer.jobs += 1;
        match job {
            Do::Nothing => {}
            Do::Wait(end) => drop(end.recv()),
            Do::Panic => panic!("as the test wants it"),
            Do::Wear => hammer.worn = true,
        }
        hammer.jobs
    }

    fn answer(&self, caller: Desk, answer: Answer) {
        // A test that is over does not listen.
        let _ = caller.answers.send(answer);
    }
}

/// A pool under test.
struct Smithy {
    pool: Pool<Smith>,
    alive: Arc<AtomicUsize>,
    has_no_tools: Arc<AtomicBool>,
    forge: Arc<Mutex<()>>,
}

impl Smithy {
    fn new(limits: Limits) -> Self {
        let smith = Smith::default();
        let (alive, has_no_tools, forge) = (smith.alive.clone(), smith.has_no_tools.clone(), smith.forge.clone());
        Self { pool: Pool::new(smith, limits), alive, has_no_tools, forge }
    }

    /// Submits a job; the answer comes out of the receiver.
    fn submit(&self, job: Do) -> Receiver<Answer> {
        let (answers, receiver) = channel();
        drop(self.pool.submit(job, Desk { answers, gone: Arc::default() }));
        receiver
    }

    /// Submits a job that goes on until the sender is dropped.
    fn hold_up(&self) -> (Sender<()>, Receiver<Answer>) {
        let (end, wait) = channel();
        (end, self.submit(Do::Wait(wait)))
    }

    fn ask(&self, job: Do) -> Answer {
        answer(&self.submit(job))
    }

    fn tools(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

/// One worker, and nothing takes too long.
fn limits() -> Limits {
    Limits { core: 1, most: 1, idle: LONG, queue: 100, wait: None, call: LONG, abandoned: 2 }
}

fn answer(receiver: &Receiver<Answer>) -> Answer {
    receiver.recv_timeout(LONG).expect("every job is answered")
}

fn wait_until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < LONG, "it never happens");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_worker_keeps_its_tool_until_that_is_worn() {
    let smithy = Smithy::new(limits());
    assert_eq!([Do::Nothing, Do::Nothing, Do::Wear].map(|job| smithy.ask(job)), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!([Do::Nothing, Do::Nothing].map(|job| smithy.ask(job)), [Ok(1), Ok(2)]);
    assert_eq!(smithy.tools(), 1);
}

#[test]
fn a_new_tool_is_made_before_anybody_needs_it() {
    let smithy = Smithy::new(limits());
    assert_eq!(smithy.ask(Do::Nothing), Ok(1));
    let forge = smithy.forge.lock().unwrap();
    assert_eq!(smithy.ask(Do::Wear), Ok(2), "nobody waits for the next tool");
    wait_until(|| smithy.tools() == 0);
    drop(forge);
    wait_until(|| smithy.tools() == 1);
    assert!(smithy.pool.wait_until_quiet(LONG));
    assert_eq!(smithy.ask(Do::Nothing), Ok(1));
}

#[test]
fn a_tool_that_is_never_done_is_given_up() {
    let smithy = Smithy::new(Limits { call: SHORT, ..limits() });
    wait_until(|| smithy.ask(Do::Nothing).is_ok());
    let forge = smithy.forge.lock().unwrap();
    let _ = smithy.ask(Do::Wear);
    wait_until(|| smithy.pool.abandoned() == 1);
    drop(forge);
    wait_until(|| smithy.pool.abandoned() == 0);
    wait_until(|| smithy.ask(Do::Nothing).is_ok());
}

#[test]
fn jobs_are_begun_in_their_order() {
    let smithy = Smithy::new(limits());
    let (end, first) = smithy.hold_up();
    let others: Vec<_> = (0..50).map(|_| smithy.submit(Do::Nothing)).collect();
    drop(end);
    assert_eq!(answer(&first), Ok(1));
    let order: Vec<_> = others.iter().map(answer).collect();
    assert_eq!(order, (2..52).map(Ok).collect::<Vec<_>>());
}

#[test]
fn a_worker_is_called_when_the_submitter_wants_it() {
    let smithy = Smithy::new(limits());
    let (answers, receiver) = channel();
    let due = smithy.pool.submit(Do::Nothing, Desk { answers, gone: Arc::default() });
    assert!(due.is_pressing());
    assert_eq!(smithy.pool.waiting(), 1);
    drop(due);
    assert_eq!(answer(&receiver), Ok(1));
}

#[test]
fn a_panic_is_answered_and_costs_only_the_tool() {
    let smithy = Smithy::new(limits());
    assert_eq!(smithy.ask(Do::Nothing), Ok(1));
    assert_eq!(smithy.ask(Do::Panic), Err(Failure::Panicked));
    assert_eq!([Do::Nothing, Do::Nothing].map(|job| smithy.ask(job)), [Ok(1), Ok(2)]);
    assert_eq!(smithy.tools(), 1);
}

#[test]
fn without_a_tool_the_answer_says_so_until_there_is_one() {
    let smithy = Smithy::new(limits());
    smithy.has_no_tools.store(true, SeqCst);
    assert_eq!(smithy.ask(Do::Nothing), Ok(0));
    smithy.has_no_tools.store(false, SeqCst);
    assert_eq!(smithy.ask(Do::Nothing), Ok(1));
}

#[test]
fn who_is_held_up_does_not_hold_up_others_and_the_extra_workers_end() {
    let smithy = Smithy::new(Limits { most: 9, idle: SHORT, ..limits() });
    let held: Vec<_> = (0..8).map(|_| smithy.hold_up()).collect();
    assert!(smithy.ask(Do::Nothing).is_ok());
    assert_eq!(smithy.tools(), 9);
    for (end, receiver) in held {
        drop(end);
        assert!(answer(&receiver).is_ok());
    }
    wait_until(|| smithy.tools() == 1);
    assert!(smithy.ask(Do::Nothing).is_ok());
}

#[test]
fn what_is_lost_is_given_up_and_its_worker_replaced() {
    let smithy = Smithy::new(Limits { call: SHORT, ..limits() });
    let (end, lost) = smithy.hold_up();
    assert_eq!(answer(&lost), Err(Failure::Overrun));
    assert_eq!(smithy.pool.abandoned(), 1);
    // The next worker could be slow on a machine that is busy, but not for ever.
    wait_until(|| smithy.ask(Do::Nothing).is_ok());
    drop(end);
    wait_until(|| smithy.pool.abandoned() == 0);
    assert!(lost.recv().is_err(), "there is one answer");
}

#[test]
fn when_too_much_is_lost_nothing_more_is_begun() {
    let impatient = Limits { most: 3, call: SHORT, wait: Some(LONG), ..limits() };
    let smithy = Smithy::new(impatient);
    let lost = [smithy.hold_up(), smithy.hold_up()];
    for (_, receiver) in &lost {
        assert_eq!(answer(receiver), Err(Failure::Overrun));
    }
    assert_eq!(smithy.pool.abandoned(), 2);
    assert_eq!(smithy.ask(Do::Nothing), Err(Failure::Stuck));
    drop(lost);
    wait_until(|| smithy.pool.abandoned() == 0);
    wait_until(|| smithy.ask(Do::Nothing).is_ok());
}

#[test]
fn patient_jobs_wait_until_what_was_lost_returns() {
    let smithy = Smithy::new(Limits { call: SHORT, abandoned: 1, ..limits() });
    let (end, lost) = smithy.hold_up();
    assert_eq!(answer(&lost), Err(Failure::Overrun));
    let patient = smithy.submit(Do::Nothing);
    assert!(!smithy.pool.wait_until_quiet(Duration::from_millis(100)));
    assert_eq!(smithy.pool.waiting(), 1);
    drop(end);
    assert!(answer(&patient).is_ok());
}

#[test]
fn impatient_jobs_do_not_wait_for_ever() {
    let smithy = Smithy::new(Limits { wait: Some(SHORT), ..limits() });
    let (end, held) = smithy.hold_up();
    let late = smithy.submit(Do::Nothing);
    assert_eq!(answer(&late), Err(Failure::Late));
    drop(end);
    assert_eq!(answer(&held), Ok(1));
}

#[test]
fn a_full_queue_takes_nothing_more() {
    let smithy = Smithy::new(Limits { queue: 2, ..limits() });
    let (end, held) = smithy.hold_up();
    wait_until(|| smithy.pool.waiting() == 0);
    let waiting = [smithy.submit(Do::Nothing), smithy.submit(Do::Nothing)];
    assert_eq!(smithy.ask(Do::Nothing), Err(Failure::Full));
    assert_eq!(smithy.pool.waiting(), 2);
    drop(end);
    assert_eq!(answer(&held), Ok(1));
    assert_eq!(waiting.map(|receiver| answer(&receiver)), [Ok(2), Ok(3)]);
}

#[test]
fn jobs_of_callers_that_are_gone_are_not_begun() {
    let smithy = Smithy::new(limits());
    let (end, held) = smithy.hold_up();
    let gone = Arc::new(AtomicBool::new(false));
    let (answers, receiver) = channel();
    drop(smithy.pool.submit(Do::Nothing, Desk { answers, gone: gone.clone() }));
    gone.store(true, SeqCst);
    drop(end);
    assert_eq!(answer(&held), Ok(1));
    assert_eq!(smithy.ask(Do::Nothing), Ok(2), "the tool was not used in between");
    assert!(receiver.recv().is_err());
}

#[test]
fn quiet_is_when_nothing_waits_and_nothing_runs() {
    let smithy = Smithy::new(limits());
    assert!(smithy.pool.wait_until_quiet(Duration::ZERO));
    let (end, _held) = smithy.hold_up();
    let _waiting = smithy.submit(Do::Nothing);
    assert!(!smithy.pool.wait_until_quiet(Duration::from_millis(10)));
    thread::scope(|scope| {
        scope.spawn(|| assert!(smithy.pool.wait_until_quiet(LONG)));
        drop(end);
    });
    assert_eq!(smithy.pool.waiting(), 0);
}

#[test]
fn a_pool_that_is_closed_begins_nothing_more() {
    let smithy = Smithy::new(limits());
    let (end, held) = smithy.hold_up();
    wait_until(|| smithy.pool.waiting() == 0);
    let waiting = [smithy.submit(Do::Nothing), smithy.submit(Do::Nothing)];
    thread::scope(|scope| {
        let quiet = scope.spawn(|| smithy.pool.wait_until_quiet(LONG));
        assert_eq!(smithy.pool.close(), Some(2));
        assert!(!quiet.join().unwrap(), "nobody waits for what is under way");
    });
    assert_eq!(waiting.map(|receiver| answer(&receiver)), [Err(Failure::Closed); 2]);
    assert_eq!(smithy.ask(Do::Nothing), Err(Failure::Closed));
    assert_eq!(smithy.pool.close(), None);
    drop(end);
    assert_eq!(answer(&held), Ok(1), "who is under way comes to its end");
    wait_until(|| smithy.tools() == 0);
}

#[test]
fn the_threads_of_a_pool_end_with_it() {
    let smithy = Smithy::new(Limits { core: 2, most: 4, ..limits() });
    let (end, _) = smithy.hold_up();
    assert!(smithy.ask(Do::Nothing).is_ok());
    let Smithy { pool, alive, .. } = smithy;
    drop(pool);
    wait_until(|| alive.load(SeqCst) == 1);
    drop(end);
    wait_until(|| alive.load(SeqCst) == 0);
}
