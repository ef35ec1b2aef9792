//! The history of allocations: each allocation, free, trim and failure, with time, place, thread and stack; and of the
//! operations of queues, with the times of their execution.
//!
//! A [`Pool`](crate::pool::Pool) and [`Allocation`](crate::usm::Allocation) report to this module, which records while
//! recording is on. While it is off, an event costs one relaxed load. The recorder knows no language's stacks: a caller names
//! the stack of what its thread does by a number of its own, with a [`StackScope`].
//!
//! ```
//! use zeusm::history::{self, Action, StackScope};
//! use zeusm::{Context, HostMemory, Runtime};
//!
//! let device = Runtime::get()?.default_device()?;
//! let context = Context::new(device.driver())?;
//! history::start(history::Options::default());
//! let memory = {
//!     let _scope = StackScope::enter(7);
//!     HostMemory::new(&context, &device, 1000)?
//! };
//! let recording = history::stop().expect("recording was on");
//! let event = recording.events.iter().find(|event| event.action == Action::Allocate);
//! assert!(event.is_some_and(|event| event.size == 1000 && event.stack == Some(7)));
//! assert_eq!(recording.live.values().map(|block| block.size).sum::<usize>(), 1000);
//! # drop(memory);
//! # Ok::<(), zeusm::Error>(())
//! ```
//!
//! A fork's child does not record until it starts a recording of its own. Threads may record concurrently: events are ordered
//! by one lock, which is held for a few instructions. The free of a block is recorded before its memory can be allocated
//! again, so that an address never has two live blocks.

mod event;
mod operation;
mod recorder;
mod stack;

use std::sync::atomic::{AtomicBool, Ordering};

pub use event::{Action, Event, Failure, Holder, LiveBlock, Place, Thread};
pub use operation::Operation;
pub(crate) use operation::{Executed, InFlight, register};
pub use recorder::{Options, Recording};
pub use stack::StackScope;

use self::recorder::Recorder;
use zeusm_process::{Local, Mutex, at_fork};

/// Whether events are recorded. Nothing is published through it: the recorder has a lock.
static ON: AtomicBool = AtomicBool::new(false);

/// The recorder of this process, `None` while recording is off.
static RECORDER: Local<Mutex<Option<Recorder>>> = Local::new();

extern "C" fn switch_off() {
    ON.store(false, Ordering::Relaxed);
}
at_fork!(None, None, Some(switch_off));

/// Starts a recording; an earlier one is dropped.
pub fn start(options: Options) {
    operation::clear();
    let before = RECORDER
        .get_or_default()
        .lock()
        .replace(Recorder::new(options));
    ON.store(true, Ordering::Relaxed);
    drop(before);
}

/// Stops recording, and returns what was recorded; `None` if recording was off. Operations in flight are left out.
pub fn stop() -> Option<Recording> {
    operation::note_executed();
    ON.store(false, Ordering::Relaxed);
    operation::clear();
    let recorder = RECORDER.get()?.lock().take();
    recorder.map(Recorder::into_recording)
}

/// Whether recording is on.
#[must_use]
#[inline]
pub fn is_recording() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A copy of what was recorded so far; `None` while recording is off. Operations in flight are left out.
#[must_use]
pub fn recording() -> Option<Recording> {
    operation::note_executed();
    let recorder = RECORDER.get()?.lock().clone();
    recorder.map(Recorder::into_recording)
}

/// The stacks whose live blocks have the most bytes, of those blocks whose place counts; at most `count` of them.
#[must_use]
pub fn holders(counts: impl Fn(&Place) -> bool, count: usize) -> Vec<Holder> {
    // Without the recorder's lock, as `counts` may allocate memory.
    with(|recorder| recorder.held())
        .map_or_else(Vec::new, |held| recorder::holders(held, counts, count))
}

/// Records what happens to memory by its address and size, if recording is on: the end of a block or of memory before its address
/// can be used again. `hit`: of an allocation from a pool, whether it had the memory.
#[inline(always)]
pub(crate) fn note(
    action: Action,
    memory: impl FnOnce() -> (usize, usize),
    place: &Place,
    hit: Option<bool>,
) {
    if is_recording() {
        add(action, memory(), place, hit);
    }
}

/// Records an allocation of `size` bytes that failed.
pub(crate) fn failed(size: usize, place: &Place, failure: Failure) {
    let stack = stack::current();
    with(|recorder| {
        recorder.add(Action::Fail, 0, size, place, None, stack);
        recorder.add_failure(failure);
    });
}

/// Records operations of a queue.
pub(crate) fn executed(operations: Vec<Executed>) {
    if !operations.is_empty() {
        with(|recorder| recorder.add_operations(operations));
    }
}

#[cold]
fn add(action: Action, (address, size): (usize, usize), place: &Place, hit: Option<bool>) {
    let stack = stack::current();
    with(|recorder| recorder.add(action, address, size, place, hit, stack));
}

/// Passes the recorder to `then`, unless recording was switched off meanwhile.
fn with<T>(then: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    RECORDER.get()?.lock().as_mut().map(then)
}

#[cfg(test)]
mod tests;
