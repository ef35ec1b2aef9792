//! The map of live allocations by address: finds the allocation of any pointer in O(log n).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm_process::{AtFork, ForkLock};

use super::allocation::Allocation;

/// Allocations by the address of their first byte.
type Live = BTreeMap<usize, Arc<Allocation>>;

static LIVE: ForkLock<Live> = ForkLock::new(BTreeMap::new());

/// Bounds of all allocations so far, which tell memory of the heap from them without the lock.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static END: AtomicUsize = AtomicUsize::new(0);

/// Adds an allocation.
pub fn insert(allocation: Arc<Allocation>) {
    // Relaxed: a thread that was given a pointer into the allocation comes after the one that made it.
    LOWEST.fetch_min(allocation.base(), Ordering::Relaxed);
    END.fetch_max(allocation.bytes().end, Ordering::Relaxed);
    LIVE.write().insert(allocation.base(), allocation);
}

/// The allocation that `address` points into.
pub fn find(address: usize) -> Option<Arc<Allocation>> {
    find_with(address, Arc::clone)
}

/// The result of `get` for the allocation that `address` points into, without a reference to it: `get` has the map's lock.
pub fn find_with<T>(address: usize, get: impl FnOnce(&Arc<Allocation>) -> T) -> Option<T> {
    if address < LOWEST.load(Ordering::Relaxed) || address >= END.load(Ordering::Relaxed) {
        return None;
    }
    let live = LIVE.read();
    let (_, allocation) = live.range(..=address).next_back()?;
    (address < allocation.bytes().end).then(|| get(allocation))
}

/// Whether an allocation has any of these addresses.
pub fn overlaps(addresses: &Range<usize>) -> bool {
    let live = LIVE.read();
    let last = live.range(..addresses.end).next_back();
    last.is_some_and(|(_, allocation)| allocation.bytes().end > addresses.start)
}

/// Removes the allocation that begins at `base`, if `accept` returns true for it.
pub fn remove(base: usize, accept: impl FnOnce(&Allocation) -> bool) -> Option<Arc<Allocation>> {
    let mut live = LIVE.write();
    live.get(&base).filter(|allocation| accept(allocation))?;
    live.remove(&base)
}

/// Removes every allocation of a context.
pub fn remove_context(context: u64) -> Vec<Arc<Allocation>> {
    LIVE.write()
        .extract_if(.., |_, allocation| allocation.request.context == context)
        .map(|it| it.1)
        .collect()
}

/// The bytes of the allocations of this process, in the order of their addresses.
pub fn own() -> Vec<Range<usize>> {
    let live = LIVE.read();
    let own = live.values().filter(|it| it.is_own());
    own.map(|it| it.bytes()).collect()
}

/// The map's lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &LIVE
}
