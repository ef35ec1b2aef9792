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
pub fn note_worker() {
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
pub fn is_host() {
    KNOWN.set(true);
}

/// Whether a thread has stepped aside: there is one processor for that, and one thread's work to take part in.
static ASIDE: AtomicBool = AtomicBool::new(false);

/// Runs `work` on a processor that no worker has, where the calling thread may use one.
pub fn beside_the_workers<T>(work: impl FnOnce() -> T) -> T {
    if is_forbidden() || ASIDE.swap(true, Ordering::Acquire) {
        return work();
    }
    let _aside = Aside(Seat::elsewhere());
    work()
}

/// Whether the environment says that the affinity of threads is not to be touched.
fn is_forbidden() -> bool {
    static FORBIDDEN: OnceLock<bool> = OnceLock::new();
    *FORBIDDEN.get_or_init(|| env::var_os(VARIABLE).is_some_and(|value| value == "0"))
}

/// A thread that has stepped aside, if it had to; it comes back however its work ends.
struct Aside(Option<Seat>);

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(seat) = &self.0 {
            seat.leave();
        }
        ASIDE.store(false, Ordering::Release);
    }
}

/// Where a thread may run that was moved.
struct Seat {
    before: CpuSet,
    now: CpuSet,
}

impl Seat {
    /// Moves the calling thread away from a worker's processor, if that is where it is.
    fn elsewhere() -> Option<Self> {
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
    fn leave(&self) {
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
            note_worker();
        };
        thread::spawn(worker).join().unwrap();
        let host = move || {
            is_host();
            sched_setaffinity(None, &only(other)).unwrap();
            note_worker();
            assert!(
                !WORKERS.get().lock().unwrap().is_set(other),
                "a host's processor"
            );
            // As the system might put it; now and then it moves the thread on at once.
            let seat = (0..1000).find_map(|_| {
                sched_setaffinity(None, &only(taken)).unwrap();
                sched_setaffinity(None, &all).unwrap();
                Seat::elsewhere()
            });
            assert!(!seat.as_ref().unwrap().now.is_set(taken));
            assert_ne!(sched_getcpu(), taken);
            seat.unwrap().leave();
            assert_eq!(sched_getaffinity(None).unwrap(), all);
            // One that may be nowhere else stays.
            sched_setaffinity(None, &only(taken)).unwrap();
            assert_eq!(beside_the_workers(sched_getcpu), taken);
        };
        thread::spawn(host).join().unwrap();
    }
}
