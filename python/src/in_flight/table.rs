//! The operations in flight by address. Several objects may refer to the same memory (slices, arrays, and objects that other
//! packages make from a pointer), so no single object can record all operations on its bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::resolve::ContextDevice;
use zeusm::Event;
use zeusm::ipc::is_mapped;
use zeusm::process::{Local, Mutex};

/// This process's operations in flight. In a fork's child, the parent's operations count as complete.
static TABLE: Local<Table> = Local::new();

#[derive(Default)]
struct Table {
    /// The number of entries, which is 0 in most programs and read without the lock.
    count: AtomicUsize,
    /// Oldest first, as the oldest entry is usually the first to be removed.
    entries: Mutex<VecDeque<Entry>>,
}

struct Entry {
    number: u64,
    touched: Vec<Range<usize>>,
    /// The owner of the operation's queue.
    context_device: Arc<ContextDevice>,
    event: Event,
}

/// An entry of the table, which the drop removes.
pub(super) struct InFlight(u64);

impl InFlight {
    /// Enters an operation on the queue of `context_device` that uses the `touched` addresses.
    pub(super) fn new(
        context_device: &Arc<ContextDevice>,
        event: &Event,
        touched: Vec<Range<usize>>,
    ) -> Self {
        /// The numbering continues in a fork's child, so that an inherited entry does not remove one of the child's.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let table = TABLE.get_or_default();
        table.entries.lock().push_back(Entry {
            number,
            touched: touched.into_iter().map(with_aliases).collect(),
            context_device: Arc::clone(context_device),
            event: event.clone(),
        });
        table.count.fetch_add(1, Ordering::Release);
        Self(number)
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
pub(crate) fn any() -> bool {
    used().is_some()
}

/// The events of the operations in flight that use one of `ranges`, except those on the queue of `own`, which is in-order,
/// so that later operations on it follow them anyway.
#[inline]
pub(crate) fn using(ranges: &[Range<usize>], own: Option<&ContextDevice>) -> Vec<Event> {
    used().map_or_else(Vec::new, |table| table.using(ranges, own))
}

impl Table {
    #[cold]
    fn using(&self, ranges: &[Range<usize>], own: Option<&ContextDevice>) -> Vec<Event> {
        let is_other =
            |entry: &&Entry| own.is_none_or(|own| !std::ptr::eq(own, &*entry.context_device));
        let ranges: Vec<_> = ranges.iter().cloned().map(with_aliases).collect();
        let overlap = |one: &Range<usize>, other: &Range<usize>| {
            !one.is_empty() && one.start < other.end && other.start < one.end
        };
        let uses = |entry: &&Entry| {
            let mut ranges = ranges.iter();
            ranges.any(|range| entry.touched.iter().any(|touched| overlap(range, touched)))
        };
        let entries = self.entries.lock();
        entries
            .iter()
            .filter(is_other)
            .filter(uses)
            .filter(|entry| !entry.event.is_over())
            .map(|entry| entry.event.clone())
            .collect()
    }
}
