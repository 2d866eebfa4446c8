//! Tests of pools with fake jobs that are fast, blocked, endless or faulty. Blocked jobs continue when the test
//! releases them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use super::*;

/// Longer than any test takes.
const LONG: Duration = Duration::from_mins(2);

/// Short enough to wait for in a test, but longer than a thread takes to start on a busy machine.
const SHORT: Duration = Duration::from_secs(3);

/// A job.
enum TestJob {
    Nothing,
    /// Blocks until the sender is dropped.
    Wait(Receiver<()>),
    Panic,
    /// Makes the resource unusable.
    Spoil,
}

/// Counts its jobs, and itself among the existing resources.
struct TestResource {
    jobs: usize,
    is_spoiled: bool,
    alive: Arc<AtomicUsize>,
}

impl Drop for TestResource {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

/// Receives the result.
struct TestCaller {
    answers: Sender<Answer>,
    gone: Arc<AtomicBool>,
}

type Answer = Result<usize, JobError>;

impl Caller for TestCaller {
    fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }
}

#[derive(Default)]
struct TestWorker {
    alive: Arc<AtomicUsize>,
    fails_to_create: Arc<AtomicBool>,
    /// Held by the test while no resource may be created.
    create_lock: Arc<Mutex<()>>,
}

impl Worker for TestWorker {
    type Resource = TestResource;
    type Job = TestJob;
    type Caller = TestCaller;
    type Output = usize;

    fn is_reusable(&self, hammer: &TestResource) -> bool {
        !hammer.is_spoiled
    }

    fn create(&self) -> Result<TestResource, usize> {
        if self.fails_to_create.load(SeqCst) {
            return Err(0);
        }
        drop(self.create_lock.lock());
        self.alive.fetch_add(1, SeqCst);
        Ok(TestResource { jobs: 0, is_spoiled: false, alive: self.alive.clone() })
    }

    fn run(&self, hammer: &mut TestResource, job: TestJob) -> usize {
        hammer.jobs += 1;
        match job {
            TestJob::Nothing => {}
            TestJob::Wait(end) => drop(end.recv()),
            TestJob::Panic => panic!("as the test wants it"),
            TestJob::Spoil => hammer.is_spoiled = true,
        }
        hammer.jobs
    }

    fn respond(&self, caller: TestCaller, answer: Answer) {
        // The test may be over.
        let _ = caller.answers.send(answer);
    }
}

/// A pool under test.
struct TestPool {
    pool: Pool<TestWorker>,
    alive: Arc<AtomicUsize>,
    fails_to_create: Arc<AtomicBool>,
    create_lock: Arc<Mutex<()>>,
}

impl TestPool {
    fn new(limits: Limits) -> Self {
        let smith = TestWorker::default();
        let (alive, has_no_tools, forge) =
            (smith.alive.clone(), smith.fails_to_create.clone(), smith.create_lock.clone());
        Self { pool: Pool::new(smith, limits), alive, fails_to_create: has_no_tools, create_lock: forge }
    }

    /// Submits a job. The receiver gets the result.
    fn submit(&self, job: TestJob) -> Receiver<Answer> {
        let (answers, receiver) = channel();
        drop(self.pool.submit(job, TestCaller { answers, gone: Arc::default() }));
        receiver
    }

    /// Submits a job that runs until the sender is dropped.
    fn submit_blocked(&self) -> (Sender<()>, Receiver<Answer>) {
        let (end, wait) = channel();
        (end, self.submit(TestJob::Wait(wait)))
    }

    fn run(&self, job: TestJob) -> Answer {
        answer(&self.submit(job))
    }

    fn resource_count(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

/// Returns limits with one worker and long timeouts.
fn limits() -> Limits {
    Limits {
        core_workers: 1,
        max_workers: 1,
        idle_timeout: LONG,
        max_queued: 100,
        queue_timeout: None,
        job_timeout: LONG,
        max_abandoned: 2,
    }
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
    let smithy = TestPool::new(limits());
    assert_eq!([TestJob::Nothing, TestJob::Nothing, TestJob::Spoil].map(|job| smithy.run(job)), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!([TestJob::Nothing, TestJob::Nothing].map(|job| smithy.run(job)), [Ok(1), Ok(2)]);
    assert_eq!(smithy.resource_count(), 1);
}

#[test]
fn a_new_tool_is_made_before_anybody_needs_it() {
    let smithy = TestPool::new(limits());
    assert_eq!(smithy.run(TestJob::Nothing), Ok(1));
    let forge = smithy.create_lock.lock().unwrap();
    assert_eq!(smithy.run(TestJob::Spoil), Ok(2), "nobody waits for the next tool");
    wait_until(|| smithy.resource_count() == 0);
    drop(forge);
    wait_until(|| smithy.resource_count() == 1);
    assert!(smithy.pool.wait_until_idle(LONG));
    assert_eq!(smithy.run(TestJob::Nothing), Ok(1));
}

#[test]
fn a_tool_that_is_never_done_is_given_up() {
    let smithy = TestPool::new(Limits { job_timeout: SHORT, ..limits() });
    wait_until(|| smithy.run(TestJob::Nothing).is_ok());
    let forge = smithy.create_lock.lock().unwrap();
    let _ = smithy.run(TestJob::Spoil);
    wait_until(|| smithy.pool.abandoned() == 1);
    drop(forge);
    wait_until(|| smithy.pool.abandoned() == 0);
    wait_until(|| smithy.run(TestJob::Nothing).is_ok());
}

#[test]
fn jobs_are_begun_in_their_order() {
    let smithy = TestPool::new(limits());
    let (end, first) = smithy.submit_blocked();
    let others: Vec<_> = (0..50).map(|_| smithy.submit(TestJob::Nothing)).collect();
    drop(end);
    assert_eq!(answer(&first), Ok(1));
    let order: Vec<_> = others.iter().map(answer).collect();
    assert_eq!(order, (2..52).map(Ok).collect::<Vec<_>>());
}

#[test]
fn a_worker_is_called_when_the_submitter_wants_it() {
    let smithy = TestPool::new(limits());
    let (answers, receiver) = channel();
    let due = smithy.pool.submit(TestJob::Nothing, TestCaller { answers, gone: Arc::default() });
    assert!(due.is_needed());
    assert_eq!(smithy.pool.waiting(), 1);
    drop(due);
    assert_eq!(answer(&receiver), Ok(1));
}

#[test]
fn a_panic_is_answered_and_costs_only_the_tool() {
    let smithy = TestPool::new(limits());
    assert_eq!(smithy.run(TestJob::Nothing), Ok(1));
    assert_eq!(smithy.run(TestJob::Panic), Err(JobError::Panicked));
    assert_eq!([TestJob::Nothing, TestJob::Nothing].map(|job| smithy.run(job)), [Ok(1), Ok(2)]);
    assert_eq!(smithy.resource_count(), 1);
}

#[test]
fn without_a_tool_the_answer_says_so_until_there_is_one() {
    let smithy = TestPool::new(limits());
    smithy.fails_to_create.store(true, SeqCst);
    assert_eq!(smithy.run(TestJob::Nothing), Ok(0));
    smithy.fails_to_create.store(false, SeqCst);
    assert_eq!(smithy.run(TestJob::Nothing), Ok(1));
}

#[test]
fn who_is_held_up_does_not_hold_up_others_and_the_extra_workers_end() {
    let smithy = TestPool::new(Limits { max_workers: 9, idle_timeout: SHORT, ..limits() });
    let held: Vec<_> = (0..8).map(|_| smithy.submit_blocked()).collect();
    assert!(smithy.run(TestJob::Nothing).is_ok());
    assert_eq!(smithy.resource_count(), 9);
    for (end, receiver) in held {
        drop(end);
        assert!(answer(&receiver).is_ok());
    }
    wait_until(|| smithy.resource_count() == 1);
    assert!(smithy.run(TestJob::Nothing).is_ok());
}

#[test]
fn what_is_lost_is_given_up_and_its_worker_replaced() {
    let smithy = TestPool::new(Limits { job_timeout: SHORT, ..limits() });
    let (end, lost) = smithy.submit_blocked();
    assert_eq!(answer(&lost), Err(JobError::TimedOut));
    assert_eq!(smithy.pool.abandoned(), 1);
    // The next worker may be slow to start on a busy machine.
    wait_until(|| smithy.run(TestJob::Nothing).is_ok());
    drop(end);
    wait_until(|| smithy.pool.abandoned() == 0);
    assert!(lost.recv().is_err(), "there is one answer");
}

#[test]
fn when_too_much_is_lost_nothing_more_is_begun() {
    let impatient = Limits { max_workers: 3, job_timeout: SHORT, queue_timeout: Some(LONG), ..limits() };
    let smithy = TestPool::new(impatient);
    let lost = [smithy.submit_blocked(), smithy.submit_blocked()];
    for (_, receiver) in &lost {
        assert_eq!(answer(receiver), Err(JobError::TimedOut));
    }
    assert_eq!(smithy.pool.abandoned(), 2);
    assert_eq!(smithy.run(TestJob::Nothing), Err(JobError::NoThread));
    drop(lost);
    wait_until(|| smithy.pool.abandoned() == 0);
    wait_until(|| smithy.run(TestJob::Nothing).is_ok());
}

#[test]
fn patient_jobs_wait_until_what_was_lost_returns() {
    let smithy = TestPool::new(Limits { job_timeout: SHORT, max_abandoned: 1, ..limits() });
    let (end, lost) = smithy.submit_blocked();
    assert_eq!(answer(&lost), Err(JobError::TimedOut));
    let patient = smithy.submit(TestJob::Nothing);
    assert!(!smithy.pool.wait_until_idle(Duration::from_millis(100)));
    assert_eq!(smithy.pool.waiting(), 1);
    drop(end);
    assert!(answer(&patient).is_ok());
}

#[test]
fn impatient_jobs_do_not_wait_for_ever() {
    let smithy = TestPool::new(Limits { queue_timeout: Some(SHORT), ..limits() });
    let (end, held) = smithy.submit_blocked();
    let late = smithy.submit(TestJob::Nothing);
    assert_eq!(answer(&late), Err(JobError::QueueTimeout));
    drop(end);
    assert_eq!(answer(&held), Ok(1));
}

#[test]
fn a_full_queue_takes_nothing_more() {
    let smithy = TestPool::new(Limits { max_queued: 2, ..limits() });
    let (end, held) = smithy.submit_blocked();
    wait_until(|| smithy.pool.waiting() == 0);
    let waiting = [smithy.submit(TestJob::Nothing), smithy.submit(TestJob::Nothing)];
    assert_eq!(smithy.run(TestJob::Nothing), Err(JobError::QueueFull));
    assert_eq!(smithy.pool.waiting(), 2);
    drop(end);
    assert_eq!(answer(&held), Ok(1));
    assert_eq!(waiting.map(|receiver| answer(&receiver)), [Ok(2), Ok(3)]);
}

#[test]
fn jobs_of_callers_that_are_gone_are_not_begun() {
    let smithy = TestPool::new(limits());
    let (end, held) = smithy.submit_blocked();
    let gone = Arc::new(AtomicBool::new(false));
    let (answers, receiver) = channel();
    drop(smithy.pool.submit(TestJob::Nothing, TestCaller { answers, gone: gone.clone() }));
    gone.store(true, SeqCst);
    drop(end);
    assert_eq!(answer(&held), Ok(1));
    assert_eq!(smithy.run(TestJob::Nothing), Ok(2), "the tool was not used in between");
    assert!(receiver.recv().is_err());
}

#[test]
fn quiet_is_when_nothing_waits_and_nothing_runs() {
    let smithy = TestPool::new(limits());
    assert!(smithy.pool.wait_until_idle(Duration::ZERO));
    let (end, _held) = smithy.submit_blocked();
    let _waiting = smithy.submit(TestJob::Nothing);
    assert!(!smithy.pool.wait_until_idle(Duration::from_millis(10)));
    thread::scope(|scope| {
        scope.spawn(|| assert!(smithy.pool.wait_until_idle(LONG)));
        drop(end);
    });
    assert_eq!(smithy.pool.waiting(), 0);
}

#[test]
fn a_pool_that_is_closed_begins_nothing_more() {
    let smithy = TestPool::new(limits());
    let (end, held) = smithy.submit_blocked();
    wait_until(|| smithy.pool.waiting() == 0);
    let waiting = [smithy.submit(TestJob::Nothing), smithy.submit(TestJob::Nothing)];
    thread::scope(|scope| {
        let quiet = scope.spawn(|| smithy.pool.wait_until_idle(LONG));
        assert_eq!(smithy.pool.close(), Some(2));
        assert!(!quiet.join().unwrap(), "nobody waits for what is under way");
    });
    assert_eq!(waiting.map(|receiver| answer(&receiver)), [Err(JobError::Closed); 2]);
    assert_eq!(smithy.run(TestJob::Nothing), Err(JobError::Closed));
    assert_eq!(smithy.pool.close(), None);
    drop(end);
    assert_eq!(answer(&held), Ok(1), "who is under way comes to its end");
    wait_until(|| smithy.resource_count() == 0);
}

#[test]
fn the_threads_of_a_pool_end_with_it() {
    let smithy = TestPool::new(Limits { core_workers: 2, max_workers: 4, ..limits() });
    let (end, _) = smithy.submit_blocked();
    assert!(smithy.run(TestJob::Nothing).is_ok());
    let TestPool { pool, alive, .. } = smithy;
    drop(pool);
    wait_until(|| alive.load(SeqCst) == 1);
    drop(end);
    wait_until(|| alive.load(SeqCst) == 0);
}
