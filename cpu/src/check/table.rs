//! The watched allocations by address, and the quarantine: the addresses of freed ones stay taken for a while, so that
//! later accesses to them are noticed.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use zeusm_process::{AtFork, ForkLock};

use super::properties::Properties;
use super::watch::{self, Watch};

/// As many freed allocations are kept, which take addresses and a little memory, and one more, whose pages a new allocation may get.
const MOST_BURIED: usize = 4096 + 1;
/// As many bytes of addresses of freed allocations are kept.
const MOST_BYTES: usize = 1 << 40;

#[derive(Default)]
struct Table {
    watches: BTreeMap<usize, Arc<Watch>>,
    buried: VecDeque<(Arc<Watch>, Box<dyn Any + Send + Sync>)>,
    bytes: usize,
}

/// A handler of a fault may take the lock: the fault is at an access to an allocation, which no code makes that holds it.
static TABLE: ForkLock<Table> = ForkLock::new(Table {
    watches: BTreeMap::new(),
    buried: VecDeque::new(),
    bytes: 0,
});

/// Adds an allocation.
pub fn insert(watch: Arc<Watch>) {
    TABLE.lock().watches.insert(watch.whole.start, watch);
}

/// The allocation, live or freed, that `address` is in or beside.
pub fn find(address: usize) -> Option<Arc<Watch>> {
    let table = TABLE.lock();
    let (_, watch) = table.watches.range(..=address).next_back()?;
    watch.whole.contains(&address).then(|| Arc::clone(watch))
}

/// All allocations that have not been freed.
pub fn live() -> Vec<Arc<Watch>> {
    let table = TABLE.lock();
    let live = |watch: &&Arc<Watch>| watch.freed.get().is_none();
    table.watches.values().filter(live).cloned().collect()
}

/// Puts a freed allocation into quarantine, with the owner of its pages. Those that have been there longest leave. Returns
/// the address of a byte beside the allocation that was overwritten.
pub fn bury(watch: Arc<Watch>, owner: Box<dyn Any + Send + Sync>) -> Option<usize> {
    if watch.is_released() {
        TABLE.lock().watches.remove(&watch.whole.start);
        return None;
    }
    let damaged = watch.bury();
    let mut gone = Vec::new();
    let mut table = TABLE.lock();
    table.bytes += watch.whole.len();
    table.buried.push_back((watch, owner));
    while (table.buried.len() > MOST_BURIED || table.bytes > MOST_BYTES)
        && let Some((oldest, owner)) = table.buried.pop_front()
    {
        table.bytes -= oldest.whole.len();
        table.watches.remove(&oldest.whole.start);
        gone.push(owner);
    }
    drop(table);
    // Unmaps the pages.
    drop(gone);
    damaged
}

/// Ends the quarantine of the allocation that has been there longest, if it is full and that one `fits`. Returns the owner of its
/// pages, which are inaccessible, as they are unless an access that was reported has left one open.
pub fn exhume(fits: impl FnOnce(&Properties) -> bool) -> Option<Box<dyn Any + Send + Sync>> {
    let mut table = TABLE.lock();
    let is_full = table.buried.len() == MOST_BURIED;
    let ends = |oldest: &Watch| is_full && fits(oldest) && !oldest.is_left();
    let oldest = table.buried.pop_front_if(|(oldest, _)| ends(oldest));
    let (oldest, owner) = oldest?;
    table.bytes -= oldest.whole.len();
    table.watches.remove(&oldest.whole.start);
    Some(owner)
}

/// Closes what kernels have opened by following pointers, as none is in flight any more.
pub fn settle() {
    if !watch::take_followed() {
        return;
    }
    let table = TABLE.lock();
    table.watches.values().for_each(|watch| watch.settle());
}

/// Closes what was left open after accesses that were reported.
pub fn close_left() {
    let table = TABLE.lock();
    let left = table.watches.values().filter(|watch| watch.is_left());
    left.for_each(|watch| watch.close_again());
}

/// Forgets the commands of the parent, in the child of a fork.
pub fn child() {
    let table = TABLE.lock();
    table.watches.values().for_each(|watch| watch.child());
}

/// The table's lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &TABLE
}
