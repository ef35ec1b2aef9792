//! All live allocations, ordered by address, so that any pointer finds its allocation in O(log n).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::allocation::Allocation;

/// Allocations by the address of their first byte.
type Live = BTreeMap<usize, Arc<Allocation>>;

/// The standard library's lock, for it is all in one word: parking_lot keeps who waits in tables that all locks share,
/// and a fork may copy such a table while another thread has it locked.
static LIVE: RwLock<Live> = RwLock::new(BTreeMap::new());

fn read() -> RwLockReadGuard<'static, Live> {
    LIVE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Live> {
    LIVE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an allocation.
pub fn insert(allocation: Arc<Allocation>) {
    write().insert(allocation.base(), allocation);
}

/// The allocation that `address` points into.
pub fn find(address: usize) -> Option<Arc<Allocation>> {
    let live = read();
    let (base, allocation) = live.range(..=address).next_back()?;
    (address - base < allocation.size()).then(|| Arc::clone(allocation))
}

/// Takes out the allocation that begins at `base`, if `accept` says so.
pub fn remove(base: usize, accept: impl FnOnce(&Allocation) -> bool) -> Option<Arc<Allocation>> {
    let mut live = write();
    live.get(&base).filter(|allocation| accept(allocation))?;
    live.remove(&base)
}

/// Takes out every allocation of a context.
pub fn remove_context(context: u64) -> Vec<Arc<Allocation>> {
    write()
        .extract_if(.., |_, allocation| allocation.context() == context)
        .map(|it| it.1)
        .collect()
}

thread_local! {
    static HELD: Cell<Option<RwLockWriteGuard<'static, Live>>> = const { Cell::new(None) };
}

/// Keeps every other thread from changing the map until this one calls [`release`], so that a fork in between does not
/// copy it half changed.
pub fn hold() {
    HELD.set(Some(write()));
}

/// Ends what [`hold`] began on this thread, or on the one that this one is a copy of.
pub fn release() {
    HELD.set(None);
}
