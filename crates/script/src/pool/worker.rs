//! The worker threads of a pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::{Caller as _, Inner, JobError, Limits, QueuedJob, RunningJob, State, Watchdog, Worker};

impl<W: Worker> Inner<W> {
    /// The main loop of a worker.
    pub(super) fn run_worker(self: &Arc<Self>) {
        let mut resource = None;
        while let Some((id, job)) = self.next_job() {
            // A panic fails this job only. The resource is dropped, because it may be in any state.
            let result = catch_unwind(AssertUnwindSafe(|| self.run_job(&mut resource, id, job)));
            let Some(job) = self.finish_job(id) else { return self.end_abandoned(resource) };
            if let Some(caller) = job.caller {
                self.worker.respond(caller, result.unwrap_or(Err(JobError::Panicked)));
            }
            if let Some(spent) = resource.take_if(|resource| !self.worker.is_reusable(resource)) {
                let id = self.state.lock().start_job(None);
                // Both can take long. If this fails, the next job tries again and reports the error.
                let replace = || {
                    drop(spent);
                    self.worker.create().ok()
                };
                resource = catch_unwind(AssertUnwindSafe(replace)).ok().flatten();
                if self.finish_job(id).is_none() {
                    return self.end_abandoned(resource);
                }
            }
        }
    }

    /// Waits for a job and takes it. Returns `None` if the worker must end.
    fn next_job(&self) -> Option<(u64, W::Job)> {
        let mut state = self.state.lock();
        loop {
            if let Some(taken) = state.take_job(&self.limits) {
                self.wake_watchdog(&state);
                return Some(taken);
            }
            let is_extra = state.workers > self.limits.core_workers;
            if state.is_closed {
                state.workers -= 1;
                self.notify_if_idle(&state);
                return None;
            }
            state.idle_workers += 1;
            self.notify_if_idle(&state);
            // The watchdog also handles jobs that wait because none may be started.
            self.wake_watchdog(&state);
            let has_timed_out = if is_extra {
                self.job_added.wait_for(&mut state, self.limits.idle_timeout).timed_out()
            } else {
                self.job_added.wait(&mut state);
                false
            };
            state.idle_workers -= 1;
            if has_timed_out && state.queue.is_empty() && state.workers > self.limits.core_workers {
                state.workers -= 1;
                return None;
            }
        }
    }

    fn wake_watchdog(&self, state: &State<W>) {
        if state.watchdog == Watchdog::Waiting && !(state.queue.is_empty() && state.running.is_empty()) {
            self.watchdog_needed.notify_one();
        }
    }

    /// Runs a job. Creates a resource first if there is none that can be used.
    fn run_job(&self, resource: &mut Option<W::Resource>, id: u64, job: W::Job) -> Result<W::Output, JobError> {
        let mut ready = match resource.take().filter(|resource| self.worker.is_reusable(resource)) {
            Some(resource) => resource,
            None => match self.worker.create() {
                Ok(created) if self.state.lock().restart_timer(id) => created,
                Ok(_) => return Err(JobError::TimedOut),
                Err(output) => return Ok(output),
            },
        };
        let output = self.worker.run(&mut ready, job);
        *resource = Some(ready);
        Ok(output)
    }

    /// Finishes a job and returns it. Returns `None` if the job was abandoned.
    fn finish_job(&self, id: u64) -> Option<RunningJob<W::Caller>> {
        let running = &mut self.state.lock().running;
        let index = running.iter().position(|job| job.id == id)?;
        Some(running.swap_remove(index))
    }

    /// Stops counting an abandoned thread, which is about to end.
    fn end_abandoned(&self, resource: Option<W::Resource>) {
        drop(resource);
        self.state.lock().abandoned -= 1;
        // A worker may wait because too many threads were abandoned.
        self.job_added.notify_all();
    }
}

impl<W: Worker> State<W> {
    /// Takes the next job whose caller still waits.
    fn take_job(&mut self, limits: &Limits) -> Option<(u64, W::Job)> {
        if self.is_blocked(limits) {
            return None;
        }
        loop {
            let QueuedJob { job, caller, .. } = self.queue.pop_front()?;
            if !caller.is_gone() {
                return Some((self.start_job(Some(caller)), job));
            }
        }
    }

    /// Records the start of a job or of a resource. Returns its id.
    fn start_job(&mut self, caller: Option<W::Caller>) -> u64 {
        self.last_job_id += 1;
        self.running.push(RunningJob { id: self.last_job_id, caller, started_at: Instant::now() });
        self.last_job_id
    }

    /// Restarts the time of a job, because its resource had to be created first. Returns false if the job was abandoned
    /// meanwhile.
    fn restart_timer(&mut self, id: u64) -> bool {
        let job = self.running.iter_mut().find(|job| job.id == id);
        job.map(|job| job.started_at = Instant::now()).is_some()
    }
}
