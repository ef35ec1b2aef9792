//! The operands that a queue retains for its operations in flight, and their drop once these are complete.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use super::list::{List, State};
use super::{RawQueue, user_code};
use crate::event::Event;
use crate::exit::Section;

/// The timeout of the wait for drops on other threads. Such a thread may wait for Python's GIL, on a busy machine for seconds.
/// It may also run code that waits for a lock that the caller has, and then only the timeout ends the wait.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

type Operands = Box<dyn Any + Send>;

thread_local! {
    static WITHOUT_DROPS: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is dropping operands, of any queue.
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `submit`, in which queues drop no operands of complete operations on this thread, for a caller whose state must not be
/// seen by arbitrary code. [`RawQueue::drop_complete`] drops them afterwards.
///
/// ```
/// # use zeusm::{Context, DeviceMemory, Queue, Runtime};
/// # let device = Runtime::get()?.default_device()?;
/// # let queue = Queue::new(&Context::new(device.driver())?, &device)?;
/// let memory = DeviceMemory::new(queue.context(), &device, 64)?;
/// let filled = zeusm::without_drops(|| queue.fill_async(memory, 3))?;
/// queue.drop_complete();
/// # filled.wait()?;
/// # Ok::<(), zeusm::Error>(())
/// ```
pub fn without_drops<T>(submit: impl FnOnce() -> T) -> T {
    let _scope = WithoutDrops(WITHOUT_DROPS.replace(true));
    submit()
}

/// Calls `function` as if outside of [`without_drops`]: for arbitrary code, a pool's failure callback for instance, that a
/// submission calls.
pub fn with_drops<T>(function: impl FnOnce() -> T) -> T {
    let _scope = WithoutDrops(WITHOUT_DROPS.replace(false));
    function()
}

/// Whether queues drop operands on this thread now.
pub(super) fn may_drop() -> bool {
    !WITHOUT_DROPS.get()
}

/// The scope of [`without_drops`] or [`with_drops`], also during a panic, and the value outside of it.
struct WithoutDrops(bool);

impl Drop for WithoutDrops {
    fn drop(&mut self) {
        WITHOUT_DROPS.set(self.0);
    }
}

/// The operands of operations in flight, and the drops of those of complete operations.
#[derive(Default)]
pub(super) struct Retained {
    /// Of the list's own operations, by their number, which is the order in which they complete.
    own: VecDeque<(u64, Event, Operands)>,
    /// Of host tasks and of other queues' operations, which complete in any order.
    others: Vec<(Event, Operands)>,
    /// The numbers of the drops that threads have begun and not ended.
    drops: Vec<u64>,
    /// The number of drops begun so far.
    begun: u64,
}

impl Retained {
    /// Retains operands until the event is complete: that of the list's own operation with this number, or any other.
    pub(super) fn insert(&mut self, number: Option<u64>, event: Event, operands: Operands) {
        let Some(number) = number else {
            self.others.push((event, operands));
            return;
        };
        // Threads that submit one after the other may come here in another order.
        let later = self.own.iter().rev();
        let later = later.take_while(|(it, ..)| *it > number).count();
        let place = self.own.len() - later;
        self.own.insert(place, (number, event, operands));
    }

    /// Whether no operands are retained or being dropped.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.others.is_empty() && self.drops.is_empty()
    }

    /// The events of the operations in flight.
    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        let own = self.own.iter().map(|(_, event, _)| event);
        own.chain(self.others.iter().map(|(event, _)| event))
    }

    /// Whether operands can be dropped.
    pub(super) fn has_complete(&self) -> bool {
        self.own
            .front()
            .is_some_and(|(_, event, _)| event.is_over())
            || self.others.iter().any(|(event, _)| event.is_over())
    }

    /// Takes the operands that a device may access: those of operations that are neither over nor of a lost device.
    pub(super) fn take_accessed(&mut self) -> Vec<Operands> {
        let is_accessed =
            |event: &Event| !event.is_over() && event.device().check_not_lost().is_ok();
        let mut accessed = Vec::new();
        for (number, event, operands) in mem::take(&mut self.own) {
            if is_accessed(&event) {
                accessed.push(operands);
            } else {
                self.own.push_back((number, event, operands));
            }
        }
        let others = self.others.extract_if(.., |(event, _)| is_accessed(event));
        accessed.extend(others.map(|(_, operands)| operands));
        accessed
    }

    /// Takes the operands of one complete operation, and records that this thread is dropping them: the number of the drop.
    fn begin_drop(&mut self) -> Option<(Operands, u64)> {
        let operands = match self.own.front() {
            Some((_, event, _)) if event.is_over() => self.own.pop_front()?.2,
            _ => {
                let complete = self.others.iter().position(|(event, _)| event.is_over())?;
                self.others.swap_remove(complete).1
            }
        };
        self.begun += 1;
        self.drops.push(self.begun);
        Some((operands, self.begun))
    }
}

impl RawQueue {
    /// Drops the operands of complete operations, except those that other threads are dropping. A panic in the drop of operands
    /// ends there, as queues drop them in many of their functions.
    pub fn drop_complete(&self) {
        if let Some(list) = self.inner.list.get() {
            list.drop_complete();
        }
    }

    /// Drops the operands of complete operations. If other threads are dropping operands, this waits for them, with a timeout
    /// of ten seconds. In a drop of operands it does not wait.
    pub fn reclaim(&self) {
        if let Some(list) = self.inner.list.get() {
            list.reclaim();
        }
    }
}

impl List {
    /// Drops the operands of complete operations outside the lock, as a drop may run arbitrary code. One after the other: a
    /// thread whose drop is delayed delays no other operands.
    pub(super) fn drop_complete(&self) {
        while may_drop() {
            let begun = self.state.lock().retained.begin_drop();
            let Some((operands, begun)) = begun else {
                return;
            };
            let dropping = Dropping::new(self, begun);
            // The caller may have submitted an operation whose operands a panic would drop.
            user_code::run(|| drop(operands));
            drop(dropping);
        }
    }

    /// Drops the operands of complete operations, and waits until those that other threads have begun to drop are dropped,
    /// with a timeout.
    pub(super) fn reclaim(&self) {
        self.drop_complete();
        // A drop that calls this would wait for itself, or for another such drop, which may be one of another queue's operands.
        if !may_drop() || IS_DROPPING.get() {
            return;
        }
        let mut state = self.state.lock();
        let last = state.retained.begun;
        let is_begun =
            |state: &mut State| state.retained.drops.iter().any(|&number| number <= last);
        if is_begun(&mut state) {
            drop(state);
            // The other thread may wait for ever for Python's GIL, once the interpreter exits.
            Section::outside(|| {
                drop(
                    self.dropped
                        .wait_while(self.state.lock(), DROP_TIMEOUT, is_begun),
                );
            });
        }
    }
}

/// A drop on this thread, whose end is recorded when this is dropped.
struct Dropping<'a> {
    list: &'a List,
    number: u64,
    was_dropping: bool,
}

impl<'a> Dropping<'a> {
    fn new(list: &'a List, number: u64) -> Self {
        Self {
            list,
            number,
            was_dropping: IS_DROPPING.replace(true),
        }
    }
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        IS_DROPPING.set(self.was_dropping);
        let mut state = self.list.state.lock();
        state.retained.drops.retain(|it| *it != self.number);
        drop(state);
        self.list.dropped.notify_all();
    }
}
