//! The processor that a host thread works on while it takes part in OpenCL's work.
//!
//! OpenCL's runtime for the CPU ties each of its workers to a processor and leaves one to the thread that waits. The
//! system does not know that: it may have woken that thread on a worker's processor, where the two then take turns
//! while another processor is idle, and a kernel of a few milliseconds is over before the system balances them.

use std::cell::Cell;

use parking_lot::Mutex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors of OpenCL's workers, as far as they have been seen.
static WORKERS: Mutex<Option<CpuSet>> = Mutex::new(None);

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
        let mut workers = WORKERS.lock();
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

/// Runs `work` on a processor that no worker has, where the calling thread may use one.
pub fn beside_the_workers<T>(work: impl FnOnce() -> T) -> T {
    let before = elsewhere();
    let result = work();
    if let Some(before) = before {
        // It worked a moment ago; were it to fail, the thread would still have a processor.
        let _ = sched_setaffinity(None, &before);
    }
    result
}

/// Moves the calling thread away from a worker's processor. Returns where it may run otherwise, if it was moved.
fn elsewhere() -> Option<CpuSet> {
    let workers = (*WORKERS.lock())?;
    let processor = sched_getcpu();
    if processor >= CpuSet::MAX_CPU || !workers.is_set(processor) {
        return None;
    }
    let before = sched_getaffinity(None).ok()?;
    let mut free = before;
    (0..CpuSet::MAX_CPU)
        .filter(|&processor| workers.is_set(processor))
        .for_each(|processor| free.unset(processor));
    if free.count() == 0 {
        return None;
    }
    sched_setaffinity(None, &free).ok().map(|()| before)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_on_a_worker_s_processor_steps_aside_and_comes_back() {
        let all = sched_getaffinity(None).unwrap();
        if all.count() < 2 {
            eprintln!("skipped: there is one processor for everybody");
            return;
        }
        let processor = (0..CpuSet::MAX_CPU).find(|&it| all.is_set(it)).unwrap();
        let mut one = CpuSet::new();
        one.set(processor);
        let pinned = move || {
            sched_setaffinity(None, &one).unwrap();
            note_worker();
        };
        thread::spawn(pinned).join().unwrap();
        let host = move || {
            // Onto the worker's processor, as the system might put it.
            sched_setaffinity(None, &one).unwrap();
            sched_setaffinity(None, &all).unwrap();
            for _ in 0..100 {
                assert_ne!(beside_the_workers(sched_getcpu), processor);
                assert_eq!(sched_getaffinity(None).unwrap(), all);
            }
            // One that may be nowhere else stays.
            sched_setaffinity(None, &one).unwrap();
            assert_eq!(beside_the_workers(sched_getcpu), processor);
        };
        thread::spawn(host).join().unwrap();
    }

    #[test]
    fn a_host_thread_is_no_worker_wherever_it_is_tied_to() {
        let tied = || {
            is_host();
            let before = WORKERS.lock().map(|workers| workers.count());
            note_worker();
            assert_eq!(WORKERS.lock().map(|workers| workers.count()), before);
        };
        thread::spawn(tied).join().unwrap();
    }
}
