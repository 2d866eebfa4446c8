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
    live: Arc<AtomicUsize>,
    drop_lock: Arc<Mutex<()>>,
}

impl Drop for TestResource {
    fn drop(&mut self) {
        drop(self.drop_lock.lock());
        self.live.fetch_sub(1, SeqCst);
    }
}

/// Receives the result.
struct TestCaller {
    sender: Sender<JobResult>,
    is_gone: Arc<AtomicBool>,
}

type JobResult = Result<usize, JobError>;

impl Caller for TestCaller {
    fn is_gone(&self) -> bool {
        self.is_gone.load(SeqCst)
    }
}

#[derive(Default)]
struct TestWorker {
    live: Arc<AtomicUsize>,
    fails_to_create: Arc<AtomicBool>,
    /// Held by the test while no resource may be created.
    create_lock: Arc<Mutex<()>>,
    /// Held by the test while no resource may be dropped.
    drop_lock: Arc<Mutex<()>>,
}

impl Worker for TestWorker {
    type Resource = TestResource;
    type Job = TestJob;
    type Caller = TestCaller;
    type Output = usize;

    fn is_reusable(&self, resource: &TestResource) -> bool {
        !resource.is_spoiled
    }

    fn create(&self) -> Result<TestResource, usize> {
        if self.fails_to_create.load(SeqCst) {
            return Err(0);
        }
        drop(self.create_lock.lock());
        self.live.fetch_add(1, SeqCst);
        Ok(TestResource { jobs: 0, is_spoiled: false, live: self.live.clone(), drop_lock: self.drop_lock.clone() })
    }

    fn run(&self, resource: &mut TestResource, job: TestJob) -> usize {
        resource.jobs += 1;
        match job {
            TestJob::Nothing => {}
            TestJob::Wait(release) => drop(release.recv()),
            TestJob::Panic => panic!("deliberate panic"),
            TestJob::Spoil => resource.is_spoiled = true,
        }
        resource.jobs
    }

    fn respond(&self, caller: TestCaller, result: JobResult) {
        // The test may be over.
        let _ = caller.sender.send(result);
    }
}

/// A pool under test.
struct TestPool {
    pool: Pool<TestWorker>,
    live: Arc<AtomicUsize>,
    fails_to_create: Arc<AtomicBool>,
    create_lock: Arc<Mutex<()>>,
    drop_lock: Arc<Mutex<()>>,
}

impl TestPool {
    fn new(limits: Limits) -> Self {
        let worker = TestWorker::default();
        let (live, fails_to_create) = (worker.live.clone(), worker.fails_to_create.clone());
        let (create_lock, drop_lock) = (worker.create_lock.clone(), worker.drop_lock.clone());
        Self { pool: Pool::new(worker, limits), live, fails_to_create, create_lock, drop_lock }
    }

    /// Submits a job. The receiver gets the result.
    fn submit(&self, job: TestJob) -> Receiver<JobResult> {
        self.submit_for(job, Arc::default())
    }

    /// Submits a job of a caller that may be gone before the job starts.
    fn submit_for(&self, job: TestJob, is_gone: Arc<AtomicBool>) -> Receiver<JobResult> {
        let (sender, receiver) = channel();
        self.pool.submit(job, TestCaller { sender, is_gone });
        receiver
    }

    /// Submits a job that runs until the sender is dropped.
    fn submit_blocked(&self) -> (Sender<()>, Receiver<JobResult>) {
        let (release, wait) = channel();
        (release, self.submit(TestJob::Wait(wait)))
    }

    fn run(&self, job: TestJob) -> JobResult {
        receive(&self.submit(job))
    }

    fn resource_count(&self) -> usize {
        self.live.load(SeqCst)
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

fn receive(receiver: &Receiver<JobResult>) -> JobResult {
    receiver.recv_timeout(LONG).expect("every job gets a result")
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "timed out");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn worker_keeps_its_resource_until_it_is_spoiled() {
    let pool = TestPool::new(limits());
    assert_eq!([TestJob::Nothing, TestJob::Nothing, TestJob::Spoil].map(|job| pool.run(job)), [Ok(1), Ok(2), Ok(3)]);
    assert_eq!([TestJob::Nothing, TestJob::Nothing].map(|job| pool.run(job)), [Ok(1), Ok(2)]);
    assert_eq!(pool.resource_count(), 1);
}

#[test]
fn resource_is_created_in_advance() {
    let pool = TestPool::new(limits());
    assert_eq!(pool.run(TestJob::Nothing), Ok(1));
    let create_lock = pool.create_lock.lock().unwrap();
    assert_eq!(pool.run(TestJob::Spoil), Ok(2), "the caller does not wait for the next resource");
    wait_until(|| pool.resource_count() == 0);
    drop(create_lock);
    wait_until(|| pool.resource_count() == 1);
    assert!(pool.pool.wait_until_idle(LONG));
    assert_eq!(pool.run(TestJob::Nothing), Ok(1));
}

#[test]
fn endless_replacement_of_a_resource_is_abandoned() {
    let pool = TestPool::new(Limits { job_timeout: SHORT, ..limits() });
    for lock in [&pool.create_lock, &pool.drop_lock] {
        wait_until(|| pool.run(TestJob::Nothing).is_ok());
        let held = lock.lock().unwrap();
        let _ = pool.run(TestJob::Spoil);
        wait_until(|| pool.pool.abandoned() == 1);
        drop(held);
        wait_until(|| pool.pool.abandoned() == 0);
    }
    wait_until(|| pool.run(TestJob::Nothing).is_ok());
}

#[test]
fn jobs_start_in_order() {
    let pool = TestPool::new(limits());
    let (release, first) = pool.submit_blocked();
    let others: Vec<_> = (0..50).map(|_| pool.submit(TestJob::Nothing)).collect();
    drop(release);
    assert_eq!(receive(&first), Ok(1));
    let order: Vec<_> = others.iter().map(receive).collect();
    assert_eq!(order, (2..52).map(Ok).collect::<Vec<_>>());
}

#[test]
fn panic_fails_the_job_and_drops_the_resource() {
    let pool = TestPool::new(limits());
    assert_eq!(pool.run(TestJob::Nothing), Ok(1));
    assert_eq!(pool.run(TestJob::Panic), Err(JobError::Panicked));
    assert_eq!([TestJob::Nothing, TestJob::Nothing].map(|job| pool.run(job)), [Ok(1), Ok(2)]);
    assert_eq!(pool.resource_count(), 1);
}

#[test]
fn failed_creation_is_the_output_of_the_job() {
    let pool = TestPool::new(limits());
    pool.fails_to_create.store(true, SeqCst);
    assert_eq!(pool.run(TestJob::Nothing), Ok(0));
    pool.fails_to_create.store(false, SeqCst);
    assert_eq!(pool.run(TestJob::Nothing), Ok(1));
}

#[test]
fn blocked_jobs_do_not_block_others() {
    let pool = TestPool::new(Limits { max_workers: 9, idle_timeout: SHORT, ..limits() });
    let blocked: Vec<_> = (0..8).map(|_| pool.submit_blocked()).collect();
    assert!(pool.run(TestJob::Nothing).is_ok());
    assert_eq!(pool.resource_count(), 9);
    for (release, receiver) in blocked {
        drop(release);
        assert!(receive(&receiver).is_ok());
    }
    wait_until(|| pool.resource_count() == 1);
    assert!(pool.run(TestJob::Nothing).is_ok());
}

#[test]
fn endless_job_is_abandoned_and_its_worker_replaced() {
    let pool = TestPool::new(Limits { job_timeout: SHORT, ..limits() });
    let (release, endless) = pool.submit_blocked();
    assert_eq!(receive(&endless), Err(JobError::TimedOut));
    assert_eq!(pool.pool.abandoned(), 1);
    // The next worker may be slow to start on a busy machine.
    wait_until(|| pool.run(TestJob::Nothing).is_ok());
    drop(release);
    wait_until(|| pool.pool.abandoned() == 0);
    assert!(endless.recv().is_err(), "there is only one response");
}

#[test]
fn no_job_starts_if_too_many_are_abandoned() {
    let limits_with_timeout = Limits { max_workers: 3, job_timeout: SHORT, queue_timeout: Some(LONG), ..limits() };
    let pool = TestPool::new(limits_with_timeout);
    let endless = [pool.submit_blocked(), pool.submit_blocked()];
    for (_, receiver) in &endless {
        assert_eq!(receive(receiver), Err(JobError::TimedOut));
    }
    assert_eq!(pool.pool.abandoned(), 2);
    assert_eq!(pool.run(TestJob::Nothing), Err(JobError::NoThread));
    drop(endless);
    wait_until(|| pool.pool.abandoned() == 0);
    wait_until(|| pool.run(TestJob::Nothing).is_ok());
}

#[test]
fn jobs_without_timeout_wait_for_abandoned_threads() {
    let pool = TestPool::new(Limits { job_timeout: SHORT, max_abandoned: 1, ..limits() });
    let (release, endless) = pool.submit_blocked();
    assert_eq!(receive(&endless), Err(JobError::TimedOut));
    let queued = pool.submit(TestJob::Nothing);
    assert!(!pool.pool.wait_until_idle(Duration::from_millis(100)));
    assert_eq!(pool.pool.waiting(), 1);
    drop(release);
    assert!(receive(&queued).is_ok());
}

#[test]
fn queued_jobs_time_out() {
    let pool = TestPool::new(Limits { queue_timeout: Some(SHORT), ..limits() });
    let (release, blocked) = pool.submit_blocked();
    let queued = pool.submit(TestJob::Nothing);
    assert_eq!(receive(&queued), Err(JobError::QueueTimeout));
    drop(release);
    assert_eq!(receive(&blocked), Ok(1));
}

#[test]
fn full_queue_rejects_jobs() {
    let pool = TestPool::new(Limits { max_queued: 2, ..limits() });
    let (release, blocked) = pool.submit_blocked();
    wait_until(|| pool.pool.waiting() == 0);
    let waiting = [pool.submit(TestJob::Nothing), pool.submit(TestJob::Nothing)];
    assert_eq!(pool.run(TestJob::Nothing), Err(JobError::QueueFull));
    assert_eq!(pool.pool.waiting(), 2);
    drop(release);
    assert_eq!(receive(&blocked), Ok(1));
    assert_eq!(waiting.map(|receiver| receive(&receiver)), [Ok(2), Ok(3)]);
}

#[test]
fn jobs_of_gone_callers_are_not_started() {
    let pool = TestPool::new(limits());
    let (release, blocked) = pool.submit_blocked();
    let is_gone = Arc::new(AtomicBool::new(false));
    let receiver = pool.submit_for(TestJob::Nothing, is_gone.clone());
    is_gone.store(true, SeqCst);
    drop(release);
    assert_eq!(receive(&blocked), Ok(1));
    assert_eq!(pool.run(TestJob::Nothing), Ok(2), "the resource was not used in between");
    assert!(receiver.recv().is_err());
}

#[test]
fn idle_means_no_queued_and_no_running_jobs() {
    let pool = TestPool::new(limits());
    assert!(pool.pool.wait_until_idle(Duration::ZERO));
    let (release, _held) = pool.submit_blocked();
    let _waiting = pool.submit(TestJob::Nothing);
    assert!(!pool.pool.wait_until_idle(Duration::from_millis(10)));
    thread::scope(|scope| {
        scope.spawn(|| assert!(pool.pool.wait_until_idle(LONG)));
        drop(release);
    });
    assert_eq!(pool.pool.waiting(), 0);
}

#[test]
fn closed_pool_starts_no_jobs() {
    let pool = TestPool::new(limits());
    let (release, blocked) = pool.submit_blocked();
    wait_until(|| pool.pool.waiting() == 0);
    let waiting = [pool.submit(TestJob::Nothing), pool.submit(TestJob::Nothing)];
    thread::scope(|scope| {
        let is_idle = scope.spawn(|| pool.pool.wait_until_idle(LONG));
        assert_eq!(pool.pool.close(), Some(2));
        assert!(!is_idle.join().unwrap(), "running jobs are not waited for");
    });
    assert_eq!(waiting.map(|receiver| receive(&receiver)), [Err(JobError::Closed); 2]);
    assert_eq!(pool.run(TestJob::Nothing), Err(JobError::Closed));
    assert_eq!(pool.pool.close(), None);
    drop(release);
    assert_eq!(receive(&blocked), Ok(1), "running jobs complete");
    wait_until(|| pool.resource_count() == 0);
}

#[test]
fn threads_end_with_the_pool() {
    let pool = TestPool::new(Limits { core_workers: 2, max_workers: 4, ..limits() });
    let (release, _) = pool.submit_blocked();
    assert!(pool.run(TestJob::Nothing).is_ok());
    let TestPool { pool, live, .. } = pool;
    drop(pool);
    wait_until(|| live.load(SeqCst) == 1);
    drop(release);
    wait_until(|| live.load(SeqCst) == 0);
}
