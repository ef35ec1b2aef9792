//! The processor that a host thread works on while it takes part in OpenCL's work.
//!
//! OpenCL's runtime for the CPU ties each of its workers to a processor and leaves one to the thread that waits. The
//! system does not know that: it may have woken that thread on a worker's processor, where the two then take turns
//! while another processor is idle, and a kernel of a few milliseconds is over before the system balances them.

use std::cell::Cell;
use std::env;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::process::PerProcess;
use crate::process::sync::Mutex;

/// The variable that forbids with `0` to change the affinity of a thread.
const VARIABLE: &str = "ZEUSM_CPU_AFFINITY";

/// The processors of OpenCL's workers, as far as they have been seen.
static WORKERS: PerProcess<Mutex<Option<CpuSet>>> = PerProcess::new();

thread_local! {
    /// Whether this thread need not be looked at (again): it is no worker, or a known one.
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Takes note of the processor of the calling thread, if it is a worker.
pub fn register_worker() {
    if KNOWN.replace(true) {
        return;
    }
    let Ok(mine) = sched_getaffinity(None) else {
        return;
    };
    if mine.count() == 1 {
        let mut workers = WORKERS.get().lock();
        let all = workers.get_or_insert_default();
        (0..CpuSet::MAX_CPU)
            .filter(|&processor| mine.is_set(processor))
            .for_each(|processor| all.set(processor));
    }
}

/// Tells that the calling thread is none of OpenCL's, unless it has been seen to be one.
pub fn register_host_thread() {
    KNOWN.set(true);
}

/// Whether a thread has stepped aside: there is one processor for that, and one thread's work to take part in.
static MOVED: AtomicBool = AtomicBool::new(false);

/// Runs `work` on a processor that no worker has, where the calling thread may use one.
pub fn off_worker_processors<T>(work: impl FnOnce() -> T) -> T {
    if is_disabled() || MOVED.swap(true, Ordering::Acquire) {
        return work();
    }
    let _moved = Moved(AffinityChange::away_from_workers());
    work()
}

/// Whether the environment says that the affinity of threads is not to be touched.
fn is_disabled() -> bool {
    static DISABLED: OnceLock<bool> = OnceLock::new();
    *DISABLED.get_or_init(|| env::var_os(VARIABLE).is_some_and(|value| value == "0"))
}

/// A thread that has stepped aside, if it had to; it comes back however its work ends.
struct Moved(Option<AffinityChange>);

impl Drop for Moved {
    fn drop(&mut self) {
        if let Some(change) = &self.0 {
            change.undo();
        }
        MOVED.store(false, Ordering::Release);
    }
}

/// Where a thread may run that was moved.
struct AffinityChange {
    before: CpuSet,
    now: CpuSet,
}

impl AffinityChange {
    /// Moves the calling thread away from a worker's processor, if that is where it is.
    fn away_from_workers() -> Option<Self> {
        let workers = (*WORKERS.get().lock())?;
        let processor = sched_getcpu();
        if processor >= CpuSet::MAX_CPU || !workers.is_set(processor) {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let mut now = before;
        (0..CpuSet::MAX_CPU)
            .filter(|&processor| workers.is_set(processor))
            .for_each(|processor| now.unset(processor));
        let moved = now.count() > 0 && sched_setaffinity(None, &now).is_ok();
        moved.then_some(Self { before, now })
    }

    /// Lets the thread run where it did before, unless somebody else has decided otherwise meanwhile.
    fn undo(&self) {
        if sched_getaffinity(None).is_ok_and(|mask| mask == self.now) {
            // It worked a moment ago; were it to fail, the thread would still have a processor.
            let _ = sched_setaffinity(None, &self.before);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    /// A set of one processor.
    fn only(processor: usize) -> CpuSet {
        let mut one = CpuSet::new();
        one.set(processor);
        one
    }

    #[test]
    fn a_thread_on_a_worker_s_processor_steps_aside_and_comes_back() {
        let all = sched_getaffinity(None).unwrap();
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&it| all.is_set(it)).collect();
        let [taken, other, ..] = processors[..] else {
            eprintln!("skipped: there is one processor for everybody");
            return;
        };
        let worker = move || {
            sched_setaffinity(None, &only(taken)).unwrap();
            register_worker();
        };
        thread::spawn(worker).join().unwrap();
        let host = move || {
            register_host_thread();
            sched_setaffinity(None, &only(other)).unwrap();
            register_worker();
            assert!(
                !WORKERS.get().lock().unwrap().is_set(other),
                "a host's processor"
            );
            // As the system might put it; now and then it moves the thread on at once.
            let change = (0..1000).find_map(|_| {
                sched_setaffinity(None, &only(taken)).unwrap();
                sched_setaffinity(None, &all).unwrap();
                AffinityChange::away_from_workers()
            });
            assert!(!change.as_ref().unwrap().now.is_set(taken));
            assert_ne!(sched_getcpu(), taken);
            change.unwrap().undo();
            assert_eq!(sched_getaffinity(None).unwrap(), all);
            // One that may be nowhere else stays.
            sched_setaffinity(None, &only(taken)).unwrap();
            assert_eq!(off_worker_processors(sched_getcpu), taken);
        };
        thread::spawn(host).join().unwrap();
    }
}
