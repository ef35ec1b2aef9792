//! The operands that a queue retains for its operations in flight.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;

use crate::event::Event;
use crate::ongoing::Ongoing;

type Operands = Box<dyn Any + Send>;

thread_local! {
    static WITHOUT_DROPS: Cell<bool> = const { Cell::new(false) };
}

/// Calls `submit`, in which queues drop no operands of complete operations on this thread, for a caller whose state must not be
/// seen by arbitrary code. `RawQueue::drop_complete` drops them afterwards.
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
    /// The drops that threads have begun and not ended.
    pub(super) drops: Ongoing,
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
        self.own.is_empty() && self.others.is_empty() && !self.drops.has_before(self.drops.next())
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
        let own = mem::take(&mut self.own).into_iter();
        let (accessed, rest): (VecDeque<_>, _) = own.partition(|(_, event, _)| is_accessed(event));
        self.own = rest;
        let others = self.others.extract_if(.., |(event, _)| is_accessed(event));
        let others = others.map(|(_, operands)| operands);
        let own = accessed.into_iter().map(|(.., operands)| operands);
        own.chain(others).collect()
    }

    /// Takes the operands of one complete operation, and records that this thread is dropping them: the number of the drop.
    pub(super) fn begin_drop(&mut self) -> Option<(Operands, u64)> {
        let operands = match self.own.front() {
            Some((_, event, _)) if event.is_over() => self.own.pop_front()?.2,
            _ => {
                let complete = self.others.iter().position(|(event, _)| event.is_over())?;
                self.others.swap_remove(complete).1
            }
        };
        Some((operands, self.drops.begin()))
    }
}
