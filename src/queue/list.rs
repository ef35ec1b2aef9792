//! The command list of a queue, with its events and the operations in flight.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use level_zero_sys as sys;
use zeusm_process::{Condvar, Mutex, MutexGuard};

use super::command_list::{CommandList, NO_WAITS, append_barrier};
use super::recorded::Recorded;
use super::retained::{Retained, may_drop};
use super::worker::{Worker, run_user_code};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::{Event, EventPool, retry};
use crate::exit;
use crate::history::InFlight;
use crate::pool::retry_out_of_memory;

/// The timeout of the wait for drops on other threads. Such a thread may wait for Python's GIL, on a busy machine for seconds.
/// It may also run code that waits for a lock that the caller has, and then only the timeout ends the wait.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

thread_local! {
    /// Whether this thread is dropping operands, of any queue.
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// A command list and its operations.
pub(super) struct List {
    context: Context,
    pub(super) device: Device,
    pub(super) events: Arc<EventPool>,
    pub(super) recorded: Arc<Recorded>,
    /// Runs the host tasks.
    pub(super) worker: Worker,
    /// The lock also orders appends, as the specification forbids concurrent ones. No thread waits for the device while it
    /// holds the lock, except for one operation without a wait list after an append has failed ([`State::retire`]).
    pub(super) state: Mutex<State>,
    /// Wakes the threads that wait for the end of a drop of operands.
    pub(super) dropped: Condvar,
}

/// A command list with a failed append. Parts of the operation, such as a barrier, and operations before it may be in flight.
pub(super) struct Retired {
    commands: Arc<CommandList>,
    /// The wait list of the failed operation.
    awaited: Vec<Event>,
}

#[derive(Default)]
pub(super) struct State {
    /// `None` after an append has failed, until the next one.
    commands: Option<Arc<CommandList>>,
    /// The command lists of failed appends, until an operation is complete that was appended later.
    pub(super) retired: Vec<Retired>,
    /// The event of the newest operation, on which the next one waits.
    pub(super) last: Option<Event>,
    /// Whether the device may still be writing an event that is complete: Intel's driver has it write the time of the end in two
    /// halves, the first of which completes the event. A second half that comes after the host's reset, for another operation,
    /// would complete the event again. The event is therefore not reused before the next operation of the list is complete.
    ends_late: bool,
    /// The number of the operation in flight that signals no event.
    pub(super) unsignalled: Option<u64>,
    /// The numbers of operations without an event that may be in flight on a command list with a failed append, as the wait for
    /// them failed as well. The thread that submitted the operation removes the number.
    unended: BTreeSet<u64>,
    /// The number of the newest operation that signalled no event, and the event that was appended after it.
    end: Option<(u64, Event)>,
    /// The number of operations so far that signal no event.
    unsignalled_count: u64,
    /// The number of operations so far that signal an event.
    numbered: u64,
    pub(super) retained: Retained,
}

impl List {
    pub(super) fn new(context: &Context, device: &Device) -> Result<Self> {
        // From 1 on.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let commands = retry_out_of_memory(|| CommandList::new(context, device))?;
        let state = State {
            commands: Some(Arc::new(commands)),
            ends_late: !context.driver().is_cpu_runtime(),
            ..State::default()
        };
        Ok(Self {
            recorded: Recorded::new(device.handle().addr(), number),
            events: EventPool::new(context, device),
            worker: Worker::default(),
            state: Mutex::new(state),
            dropped: Condvar::default(),
            context: context.clone(),
            device: device.clone(),
        })
    }

    /// Waits until an operation of the list is complete. When the wait fails, the error is returned only once the device
    /// cannot access the operands any more.
    pub(super) fn drain(&self, event: &Event) -> Result<()> {
        event.finish().inspect_err(|_| {
            self.wait_after_failure(event);
        })
    }

    /// After a failed wait, waits for the list, or else for the event; `false` when both waits fail, as on a lost device.
    /// The list may be idle before the operation is submitted, and while that of another list is in flight.
    fn wait_after_failure(&self, event: &Event) -> bool {
        let is_in_list = event.number_in(&self.events).is_some() && event.is_submitted();
        is_in_list && matches!(self.synchronize(), Ok(true)) || event.drain().is_ok()
    }

    /// After an error, waits for the operation of this number, which signals no event: for its command list, or, where that keeps
    /// failing, for an event that is appended now. If both fail, the device is lost and executes no operations.
    pub(super) fn end_after_failure(&self, commands: &CommandList, number: u64) {
        if retry(|| commands.finish()).is_err() {
            let _ = self.events.reserve();
            let mut state = self.state.lock();
            // Another thread may have done so.
            let _ = self.signal_end(&mut state);
            let end = state.end_of(number);
            drop(state);
            let _ = end.map(|event| event.drain());
        }
        self.state.lock().end_unsignalled(number);
    }

    /// Ends the use of the list, whose operations the history gets.
    pub(super) fn end(&self) {
        self.finish();
        self.recorded.note_executed();
    }

    /// The events of the operations in flight, and those for which operands are retained.
    fn in_flight(&self) -> Vec<Event> {
        let state = self.state.lock();
        let events = state.retained.events().chain(&state.last);
        events.cloned().collect()
    }

    /// Whether one of these waits for the host.
    pub(super) fn waits_for_host(&self) -> bool {
        !self.in_flight().iter().all(Event::is_submitted)
    }

    /// Waits until no operation is in flight, and drops the operands. Failures are reported to threads that wait for the
    /// events. There are no more waits for a device after one that fails: a lost device executes no operations and responds
    /// slowly. If the device is not lost, its operation may be in flight, and the operands are leaked.
    fn finish(&self) {
        let mut failed: Vec<Device> = Vec::new();
        for event in self.in_flight() {
            if !failed.contains(event.device())
                && event.finish().is_err()
                && !self.wait_after_failure(&event)
            {
                failed.push(event.device().clone());
            }
        }
        self.reclaim();
        mem::forget(self.state.lock().retained.take_accessed());
    }

    /// Waits until all appended operations are complete; `false` if the driver lacks the function, and without a command list,
    /// as the operations may be in one that is retired.
    pub(super) fn synchronize(&self) -> Result<bool> {
        let state = self.state.lock();
        let retired = state.retired.iter().map(|retired| &retired.commands);
        let lists: Vec<_> = retired.chain(&state.commands).cloned().collect();
        drop(state);
        for list in &lists {
            if !list.synchronize(Duration::MAX)? {
                return Ok(false);
            }
        }
        Ok(!lists.is_empty())
    }

    /// Locks the list for an append. After a failed one it has no command list: the new one gets the memory of pools if there
    /// is none for it, which needs the lock to be free.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.commands.is_some() {
            return Ok(state);
        }
        drop(state);
        let commands = retry_out_of_memory(|| CommandList::new(&self.context, &self.device))?;
        let mut state = self.state.lock();
        state.commands.get_or_insert_with(|| Arc::new(commands));
        Ok(state)
    }

    /// The command list for an append. The append of the signal before it may have failed since [`lock`](Self::lock).
    fn commands(&self, state: &mut State) -> Result<Arc<CommandList>> {
        if let Some(commands) = &state.commands {
            return Ok(Arc::clone(commands));
        }
        let commands = Arc::new(CommandList::new(&self.context, &self.device)?);
        state.commands = Some(Arc::clone(&commands));
        Ok(commands)
    }

    /// Appends an operation. After a failure no other operation is appended to that command list: Intel's driver leaves the
    /// commands of a failed submission in the list's buffer, and would execute these instead of the next operation's.
    pub(super) fn append_with(
        &self,
        state: &mut State,
        awaited: &[Event],
        append: impl FnOnce(sys::ze_command_list_handle_t) -> Result<()>,
    ) -> Result<Arc<CommandList>> {
        let commands = self.commands(state)?;
        match append(commands.handle()) {
            Ok(()) => Ok(commands),
            Err(error) => {
                if !leaves_list_unchanged(&error) {
                    state.retire(commands, awaited);
                }
                Err(error)
            }
        }
    }

    /// Appends the signal of an event after an operation that signals none.
    pub(super) fn signal_end(&self, state: &mut State) -> Result<()> {
        let Some(number) = state.unsignalled else {
            return Ok(());
        };
        let event = self.events.take_at_once()?;
        self.append_with(state, &[], |list| {
            // SAFETY: the list and the event are alive.
            unsafe { append_barrier(self.context.library(), list, event.handle(), NO_WAITS) }
        })?;
        event.set_submitted(Ok(()));
        state.unsignalled = None;
        if let Some(before) = state.set_last(&event) {
            let own = event.number_in(&self.events);
            state.retained.insert(own, event.clone(), Box::new(before));
        }
        state.end = Some((number, event));
        Ok(())
    }

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
            run_user_code(|| drop(operands));
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
        let next = state.retained.drops.next();
        let is_begun = |state: &mut State| state.retained.drops.has_before(next);
        if is_begun(&mut state) {
            drop(state);
            // The other thread may wait for ever for Python's GIL, once the interpreter exits.
            exit::outside(|| {
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
        state.retained.drops.end(self.number);
        drop(state);
        self.list.dropped.notify_all();
    }
}

impl State {
    /// Puts the command list of a failed append aside; the next append makes a new one. It is not waited for yet, and not
    /// destroyed with Intel's driver: both submit to the device again, and if that fails, too, the driver hangs in a later append.
    fn retire(&mut self, commands: Arc<CommandList>, awaited: &[Event]) {
        self.commands = None;
        commands.leak();
        // No event can be appended after it any more. It has no wait list, so it ends soon.
        let unsignalled = self.unsignalled.take();
        self.unended
            .extend(unsignalled.filter(|_| commands.finish().is_err()));
        self.retired.push(Retired {
            commands,
            awaited: awaited.to_vec(),
        });
    }

    /// Ends the operation of this number, which signals no event; returns whether it was the newest one.
    pub(super) fn end_unsignalled(&mut self, number: u64) -> bool {
        self.unended.remove(&number);
        self.unsignalled.take_if(|it| *it == number).is_some()
    }

    /// Whether the operation of this number may be in flight although no event will be signalled after it. The caller waits
    /// for its command list.
    pub(super) fn take_unended(&mut self, number: u64) -> bool {
        self.unended.remove(&number)
    }

    /// The event of an operation that signalled none itself, or `None` if the operation is complete.
    pub(super) fn end_of(&self, number: u64) -> Option<Event> {
        let end = self.end.as_ref().filter(|(of, _)| *of == number);
        end.map(|(_, event)| event.clone())
    }

    /// Whether no operation is in flight.
    pub(super) fn is_idle(&mut self) -> bool {
        let is_over = self.last.as_ref().is_none_or(Event::is_over);
        if is_over && !self.ends_late {
            self.last = None;
        }
        is_over && self.unsignalled.is_none() && self.retired_wait_for().next().is_none()
    }

    /// The events that failed appends may have left the device waiting for.
    pub(super) fn retired_wait_for(&self) -> impl Iterator<Item = &Event> {
        let awaited = self.retired.iter().flat_map(|retired| &retired.awaited);
        awaited.filter(|event| !event.is_over())
    }

    /// Records that an operation without an event was appended; returns its number.
    pub(super) fn set_unsignalled(&mut self) -> u64 {
        self.unsignalled_count += 1;
        self.unsignalled = Some(self.unsignalled_count);
        self.unsignalled_count
    }

    /// Records the newest operation; returns the event of the one before, if that must live until this one is complete.
    #[must_use]
    pub(super) fn set_last(&mut self, event: &Event) -> Option<Event> {
        self.numbered += 1;
        event.set_number(self.numbered);
        let before = self.last.replace(event.clone());
        before.filter(|_| self.ends_late)
    }
}

/// Whether nothing was appended: the arguments were refused before the call, or the driver lacks the function, which
/// is then called for each such copy.
fn leaves_list_unchanged(error: &Error) -> bool {
    match error {
        Error::Call { function, result } => {
            *function == "zeCommandListAppendMemoryCopyFromContext"
                && *result == sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_without_an_event_has_a_number_of_its_own() {
        let mut state = State::default();
        let numbers = [(); 3].map(|()| {
            let number = state.set_unsignalled();
            assert_eq!(state.unsignalled, Some(number));
            number
        });
        assert!(numbers.is_sorted_by(|one, next| one < next));
    }
}
