//! The operations in flight by address. Several objects may refer to the same memory (slices, arrays, and objects that other
//! packages make from a pointer), so no single object can record all operations on its bytes.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use super::wait::SLICE;
use crate::interpreter::{detach, is_finalizing};
use crate::resolve::ContextDevice;
use zeusm::Event;
use zeusm::ipc::is_mapped;
use zeusm_process::{Condvar, Local, Mutex};

/// This process's operations in flight. In a fork's child, the parent's operations count as complete.
static TABLE: Local<Table> = Local::new();

/// The number of the next entry. The numbering continues in a fork's child, so that an inherited entry does not remove one of
/// the child's.
static NUMBER: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Table {
    /// The number of entries, which is 0 in most programs and read without the lock.
    count: AtomicUsize,
    /// Oldest first, as the oldest entry is usually the first to be removed.
    entries: Mutex<VecDeque<Entry>>,
    /// Wakes the threads that wait for the submission of an operation.
    submitted: Condvar,
}

struct Entry {
    number: u64,
    touched: Vec<Range<usize>>,
    /// The owner of the operation's queue.
    context_device: Arc<ContextDevice>,
    state: State,
}

enum State {
    /// The thread is submitting the operation.
    Submitting(ThreadId),
    Submitted(Event),
    /// No operation: the thread waits for those before it, to access the memory from the host.
    Awaiting(ThreadId),
}

impl State {
    fn new(event: Option<&Event>) -> Self {
        event.map_or_else(
            || Self::Submitting(thread::current().id()),
            |event| Self::Submitted(event.clone()),
        )
    }
}

/// An entry of the table, which the drop removes.
pub(crate) struct InFlight(u64);

impl InFlight {
    /// Enters an operation on the queue of `context_device` that uses the `touched` addresses. It has no event as long as this
    /// thread is submitting it.
    pub(super) fn new(
        context_device: &Arc<ContextDevice>,
        event: Option<&Event>,
        touched: Vec<Range<usize>>,
    ) -> Self {
        Self::enter(context_device, State::new(event), touched)
    }

    /// Enters a host access to memory that migrates. Until this is dropped, submissions by other threads that use the `touched`
    /// addresses wait, so that those in flight come to an end.
    pub(crate) fn awaited_by_host(
        context_device: &Arc<ContextDevice>,
        touched: Vec<Range<usize>>,
    ) -> Self {
        let state = State::Awaiting(thread::current().id());
        Self::enter(context_device, state, touched)
    }

    fn enter(
        context_device: &Arc<ContextDevice>,
        state: State,
        touched: Vec<Range<usize>>,
    ) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let table = TABLE.get_or_default();
        table.entries.lock().push_back(Entry {
            number,
            touched: touched.into_iter().map(with_aliases).collect(),
            context_device: Arc::clone(context_device),
            state,
        });
        table.count.fetch_add(1, Ordering::Release);
        Self(number)
    }

    /// Replaces the event; `None` while this thread submits another part of the operation.
    pub(super) fn set(&self, event: Option<&Event>) {
        let Some(table) = TABLE.get() else { return };
        let mut entries = table.entries.lock();
        let entry = entries.iter_mut().find(|entry| entry.number == self.0);
        let before = entry.map(|entry| mem::replace(&mut entry.state, State::new(event)));
        drop(entries);
        table.submitted.notify_all();
        drop(before);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(table) = TABLE.get() else { return };
        let removed = {
            let mut entries = table.entries.lock();
            let found = entries.iter().position(|entry| entry.number == self.0);
            found.and_then(|at| entries.remove(at))
        };
        if removed.is_some() {
            table.count.fetch_sub(1, Ordering::Release);
            table.submitted.notify_all();
        }
        // Outside the lock, as it may be the last owner of a queue.
        drop(removed);
    }
}

/// The range; of a mapping, the whole address space, as its bytes may have other addresses, too.
fn with_aliases(range: Range<usize>) -> Range<usize> {
    if is_mapped(&range) {
        0..usize::MAX
    } else {
        range
    }
}

/// The table, if it has entries.
#[inline]
fn used() -> Option<&'static Table> {
    TABLE
        .get()
        .filter(|table| table.count.load(Ordering::Acquire) > 0)
}

/// Whether any operation is in flight. One that is complete counts until its operands are reclaimed.
#[inline]
pub(crate) fn any() -> bool {
    used().is_some()
}

/// The events of the operations in flight that use one of `ranges`, except those on the queue of `own`, which is in-order, so
/// that later operations on it follow them anyway. While another thread submits such an operation, this waits for it without
/// the GIL; the handlers of signals run meanwhile if `signals`. With `own`, it waits for the host accesses of other threads as well.
///
/// # Errors
/// The exception of a signal's handler.
#[inline]
pub(crate) fn using(
    py: Python<'_>,
    ranges: &[Range<usize>],
    own: Option<&ContextDevice>,
    signals: bool,
) -> PyResult<Vec<Event>> {
    used().map_or_else(
        || Ok(Vec::new()),
        |table| table.using(py, ranges, own, signals),
    )
}

impl Table {
    #[cold]
    fn using(
        &self,
        py: Python<'_>,
        ranges: &[Range<usize>],
        own: Option<&ContextDevice>,
        signals: bool,
    ) -> PyResult<Vec<Event>> {
        let ranges: Vec<_> = ranges.iter().cloned().map(with_aliases).collect();
        let (this, next) = (thread::current().id(), NUMBER.load(Ordering::Relaxed));
        // A host access of a thread that the interpreter's exit has stopped never comes to an end. Those that begin later wait
        // for this submission.
        let before_submission = |entry: &Entry, by| {
            own.is_some() && by != this && entry.number < next && !is_finalizing()
        };
        let is_awaited = |entry: &Entry| match entry.state {
            State::Submitting(_) => true,
            State::Submitted(_) => false,
            State::Awaiting(by) => before_submission(entry, by),
        };
        let concerns = |entry: &&Entry| {
            let is_other = matches!(entry.state, State::Awaiting(_))
                || own.is_none_or(|own| !ptr::eq(own, &*entry.context_device));
            is_other && entry.uses(&ranges)
        };
        let is_own = |entry: &Entry| matches!(entry.state, State::Submitting(by) if by == this);
        loop {
            let entries = self.entries.lock();
            let concerned = entries.iter().filter(concerns);
            // A thread does not wait in its own submission, in a finalizer for instance: another thread might wait for that.
            if entries.iter().any(is_own) || !concerned.clone().any(is_awaited) {
                return Ok(concerned.filter_map(Entry::unfinished).collect());
            }
            drop(entries);
            detach(py, || {
                let is_submitting =
                    |entries: &mut VecDeque<Entry>| entries.iter().filter(concerns).any(is_awaited);
                drop(
                    self.submitted
                        .wait_while(self.entries.lock(), SLICE, is_submitting),
                );
            });
            if signals {
                py.check_signals()?;
            }
        }
    }
}

impl Entry {
    /// Whether the operation uses one of the addresses.
    fn uses(&self, ranges: &[Range<usize>]) -> bool {
        let overlap = |one: &Range<usize>, other: &Range<usize>| {
            !one.is_empty() && one.start < other.end && other.start < one.end
        };
        let mut ranges = ranges.iter();
        ranges.any(|range| self.touched.iter().any(|touched| overlap(range, touched)))
    }

    /// The event of an operation that has been submitted and is not over.
    fn unfinished(&self) -> Option<Event> {
        match &self.state {
            State::Submitted(event) => (!event.is_over()).then(|| event.clone()),
            State::Submitting(_) | State::Awaiting(_) => None,
        }
    }
}
