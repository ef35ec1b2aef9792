//! The affinity of host threads that help to execute OpenCL commands.
//!
//! The OpenCL runtime for the CPU pins each of its workers to a processor and leaves one processor to the thread that
//! waits. The system's scheduler does not know that: it may have woken the waiting thread on a worker's processor,
//! where the two then share it while another processor is idle, and a kernel of a few milliseconds is over before the
//! scheduler balances them.

use std::cell::Cell;
use std::env;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use zeusm_process::{Lazy, Local, Mutex};

/// The environment variable that disables changes of affinity with `0`.
const VARIABLE: &str = "ZEUSM_CPU_AFFINITY";

/// The processors of the OpenCL workers seen so far.
static WORKERS: Local<Mutex<Option<CpuSet>>> = Local::new();

thread_local! {
    /// Whether this thread need not be examined: it is a host thread, or a known worker.
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Registers the processor of the calling thread, if it is a worker.
pub fn register_worker() {
    if KNOWN.replace(true) {
        return;
    }
    let Ok(mine) = sched_getaffinity(None) else {
        return;
    };
    if mine.count() == 1 {
        let mut workers = WORKERS.get_or_default().lock();
        let all = workers.get_or_insert_default();
        (0..CpuSet::MAX_CPU)
            .filter(|&processor| mine.is_set(processor))
            .for_each(|processor| all.set(processor));
    }
}

/// Marks the calling thread as a host thread, unless it is a known worker.
pub fn register_host_thread() {
    KNOWN.set(true);
}

/// Whether a thread was moved: there is one free processor, and one thread at a time that helps.
static MOVED: AtomicBool = AtomicBool::new(false);

/// Runs `work` on a processor that no worker has, where the calling thread may use one.
pub fn off_worker_processors<T>(work: impl FnOnce() -> T) -> T {
    if is_disabled() || MOVED.swap(true, Ordering::Acquire) {
        return work();
    }
    let _moved = Moved(AffinityChange::away_from_workers());
    work()
}

/// Whether the environment disables changes of affinity.
fn is_disabled() -> bool {
    static DISABLED: Lazy<bool> = Lazy::new();
    *DISABLED.get_or_make(|| env::var_os(VARIABLE).is_some_and(|value| value == "0"))
}

/// Restores the thread's affinity when dropped, if it was changed.
struct Moved(Option<AffinityChange>);

impl Drop for Moved {
    fn drop(&mut self) {
        if let Some(change) = &self.0 {
            change.undo();
        }
        MOVED.store(false, Ordering::Release);
    }
}

/// The affinity of a moved thread, before and after.
struct AffinityChange {
    before: CpuSet,
    now: CpuSet,
}

impl AffinityChange {
    /// Moves the calling thread away from a worker's processor, if it runs on one.
    fn away_from_workers() -> Option<Self> {
        let workers = (*WORKERS.get_or_default().lock())?;
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

    /// Restores the affinity, unless it was changed by other code meanwhile.
    fn undo(&self) {
        if sched_getaffinity(None).is_ok_and(|mask| mask == self.now) {
            // It worked before; if it fails, the thread can still run.
            let _ = sched_setaffinity(None, &self.before);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};
    use std::process::Command;
    use std::thread;

    use super::*;

    /// A set of one processor.
    fn only(processor: usize) -> CpuSet {
        let mut one = CpuSet::new();
        one.set(processor);
        one
    }

    /// Registers a worker, and runs `host` in a host's thread with all processors, the worker's, and another one; not on a
    /// machine with one processor.
    fn beside_a_worker(host: impl FnOnce(CpuSet, usize, usize) + Send + 'static) {
        let all = sched_getaffinity(None).unwrap();
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&it| all.is_set(it)).collect();
        let [taken, other, ..] = processors[..] else {
            eprintln!("skipped: there is one processor");
            return;
        };
        let worker = move || {
            sched_setaffinity(None, &only(taken)).unwrap();
            register_worker();
        };
        thread::spawn(worker).join().unwrap();
        thread::spawn(move || host(all, taken, other))
            .join()
            .unwrap();
    }

    /// Tries `attempt` on the worker's processor until it returns a value. The scheduler sometimes moves the thread on at
    /// once.
    fn on_processor<T>(taken: usize, all: &CpuSet, attempt: impl Fn() -> Option<T>) -> Option<T> {
        (0..1000).find_map(|_| {
            sched_setaffinity(None, &only(taken)).unwrap();
            sched_setaffinity(None, all).unwrap();
            attempt()
        })
    }

    #[test]
    fn a_thread_on_a_worker_s_processor_steps_aside_and_comes_back() {
        beside_a_worker(|all, taken, other| {
            register_host_thread();
            sched_setaffinity(None, &only(other)).unwrap();
            register_worker();
            assert!(
                !WORKERS.get_or_default().lock().unwrap().is_set(other),
                "a host's processor"
            );
            let change = on_processor(taken, &all, AffinityChange::away_from_workers).unwrap();
            assert!(!change.now.is_set(taken));
            assert_ne!(sched_getcpu(), taken);
            change.undo();
            assert_eq!(sched_getaffinity(None).unwrap(), all);
            // A thread that is restricted to the worker's processor stays there.
            sched_setaffinity(None, &only(taken)).unwrap();
            assert_eq!(off_worker_processors(sched_getcpu), taken);
        });
    }

    #[test]
    fn a_panic_does_not_leave_the_thread_s_affinity_changed() {
        beside_a_worker(|all, taken, _| {
            // Again after the first panic: one thread at a time is moved.
            for _ in 0..2 {
                let changed = on_processor(taken, &all, || {
                    let work = || resume_unwind(Box::new(sched_getaffinity(None).unwrap()));
                    let panic = catch_unwind(|| off_worker_processors(work)).unwrap_err();
                    assert_eq!(sched_getaffinity(None).unwrap(), all);
                    let within = *panic.downcast::<CpuSet>().unwrap();
                    (within != all).then_some(within)
                });
                assert!(!changed.unwrap().is_set(taken));
            }
        });
    }

    #[test]
    fn the_environment_disables_changes() {
        let test = "opencl::affinity::tests::where_changes_are_disabled";
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--ignored"])
            .env(VARIABLE, "0")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "run by the_environment_disables_changes"]
    fn where_changes_are_disabled() {
        beside_a_worker(|all, taken, _| {
            let changed = on_processor(taken, &all, || {
                let within = off_worker_processors(|| sched_getaffinity(None).unwrap());
                (within != all).then_some(within)
            });
            assert!(changed.is_none());
        });
    }
}
