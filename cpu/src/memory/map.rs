//! The map of live allocations by address: finds the allocation of any pointer in O(log n).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::allocation::Allocation;
use crate::process::sync::{HeldGuard, RwLock, RwLockWriteGuard};

/// Allocations by the address of their first byte.
type Live = BTreeMap<usize, Arc<Allocation>>;

static LIVE: RwLock<Live> = RwLock::new(BTreeMap::new());

/// Adds an allocation.
pub fn insert(allocation: Arc<Allocation>) {
    LIVE.write().insert(allocation.base(), allocation);
}

/// The allocation that `address` points into.
pub fn find(address: usize) -> Option<Arc<Allocation>> {
    let live = LIVE.read();
    let (base, allocation) = live.range(..=address).next_back()?;
    (address - base < allocation.size()).then(|| Arc::clone(allocation))
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
        .extract_if(.., |_, allocation| allocation.context() == context)
        .map(|it| it.1)
        .collect()
}

static HELD_AT_FORK: HeldGuard<RwLockWriteGuard<'static, Live>> = HeldGuard::new();

/// Locks the map until this thread calls [`release`], so that a fork copies it in a consistent state.
pub fn prepare() {
    // SAFETY: the map's lock guards `HELD_AT_FORK`.
    unsafe { HELD_AT_FORK.put(LIVE.write()) };
}

/// Undoes [`prepare`], in the parent and in the child.
pub fn release() {
    // SAFETY: this thread took the lock in `prepare`, or is a copy of the one that did.
    drop(unsafe { HELD_AT_FORK.take() });
}
