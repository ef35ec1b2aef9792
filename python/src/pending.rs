//! What zeusm itself has under way, by address: slices, arrays and what other packages make of a pointer are other objects
//! of the same memory, so that no object can know alone what its bytes have to wait for.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::place::Place;
use zeusm::Event;
use zeusm::process::{Local, Mutex};

/// The operations under way of this process. In a fork's child those of the parent are over.
static TABLE: Local<Table> = Local::new();

#[derive(Default)]
struct Table {
    /// How many there are: in most programs none, as can be seen without the lock.
    count: AtomicUsize,
    /// The oldest first, which as a rule is the first to go.
    entries: Mutex<VecDeque<Entry>>,
}

struct Entry {
    number: u64,
    touched: Vec<Range<usize>>,
    /// On whose queue it runs.
    place: Arc<Place>,
    event: Event,
}

/// An operation that is listed until this is dropped, which whatever keeps its operands sees to.
pub(super) struct Listed(u64);

impl Listed {
    /// Lists an operation that was submitted to the queue of `place` and touches those addresses.
    pub(super) fn new(place: &Arc<Place>, event: &Event, touched: Vec<Range<usize>>) -> Self {
        /// Goes on in a fork's child, so that what it inherited takes nothing of its own off the list.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let table = TABLE.get_or_default();
        table.entries.lock().push_back(Entry {
            number,
            touched,
            place: Arc::clone(place),
            event: event.clone(),
        });
        table.count.fetch_add(1, Ordering::Release);
        Self(number)
    }
}

impl Drop for Listed {
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
        // Outside of the lock: it may be the last owner of a place.
        drop(removed);
    }
}

/// The ends of the operations under way that touch one of `ranges`, but for those on the queue of `here`, which are in
/// order with what else goes there.
#[inline]
pub(super) fn touching(ranges: &[Range<usize>], here: Option<&Place>) -> Vec<Event> {
    match TABLE.get() {
        Some(table) if table.count.load(Ordering::Acquire) > 0 => table.touching(ranges, here),
        _ => Vec::new(),
    }
}

impl Table {
    #[cold]
    fn touching(&self, ranges: &[Range<usize>], here: Option<&Place>) -> Vec<Event> {
        let is_elsewhere =
            |entry: &&Entry| here.is_none_or(|here| !std::ptr::eq(here, &*entry.place));
        let meet = |one: &Range<usize>, other: &Range<usize>| {
            !one.is_empty() && one.start < other.end && other.start < one.end
        };
        let touches = |entry: &&Entry| {
            let mut ranges = ranges.iter();
            ranges.any(|range| entry.touched.iter().any(|touched| meet(range, touched)))
        };
        let entries = self.entries.lock();
        entries
            .iter()
            .filter(is_elsewhere)
            .filter(touches)
            .filter(|entry| !matches!(entry.event.is_complete(), Ok(true)))
            .map(|entry| entry.event.clone())
            .collect()
    }
}
