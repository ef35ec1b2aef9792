//! Commands that can go on, and the loop in which a thread advances them.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use smallvec::SmallVec;

use super::help::QueueNumber;
use super::priority::{ByPriority, Priority};

/// A command that its stream has released. Its one owner advances it: a thread, a signal of its wait list, or the workers.
pub trait Advance: Send {
    /// That of its stream.
    fn priority(&self) -> Priority;

    /// Orders it after a native command in flight by enqueueing it to the same queue, if that is possible.
    fn chain(&mut self, queue: QueueNumber) -> bool;

    /// Advances it: past the signals of its wait list, and then into execution.
    fn advance(self: Box<Self>);
}

/// Such a command, whatever it is.
pub type Ready = Box<dyn Advance>;

/// Commands that are ready, in most cases one at most.
pub type ReadyList = SmallVec<[Ready; 1]>;

thread_local! {
    /// The ready commands that this thread is dispatching. Without a destructor, as threads dispatch also while they exit; it is
    /// empty after each dispatch.
    static READY: RefCell<ManuallyDrop<Option<ByPriority<Ready>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Advances commands that are ready.
///
/// The completion of one may make the next one ready, and so on. Nested calls leave their commands to the outermost
/// one, since recursion could overflow the stack.
pub fn dispatch(mut ready: ReadyList) {
    if ready.is_empty() {
        return;
    }
    let mut next = READY.with_borrow_mut(|queue| {
        let is_outermost = queue.is_none();
        let queue = queue.get_or_insert_default();
        // A single one, as most are, needs no place in the queue.
        let single = (is_outermost && ready.len() == 1).then(|| ready.pop());
        for command in ready {
            queue.push(command.priority(), command);
        }
        single
            .flatten()
            .or_else(|| is_outermost.then(|| queue.pop())?)
    });
    while let Some(command) = next {
        command.advance();
        next = READY.with_borrow_mut(|queue| {
            let command = queue.as_mut()?.pop();
            if command.is_none() {
                **queue = None;
            }
            command
        });
    }
}
