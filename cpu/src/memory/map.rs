//! All live allocations, ordered by address, so that any pointer finds its allocation in O(log n).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::allocation::Allocation;
use crate::process::sync::{Held, RwLock, RwLockWriteGuard};

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

/// Takes out the allocation that begins at `base`, if `accept` says so.
pub fn remove(base: usize, accept: impl FnOnce(&Allocation) -> bool) -> Option<Arc<Allocation>> {
    let mut live = LIVE.write();
    live.get(&base).filter(|allocation| accept(allocation))?;
    live.remove(&base)
}

/// Takes out every allocation of a context.
pub fn remove_context(context: u64) -> Vec<Arc<Allocation>> {
    LIVE.write()
        .extract_if(.., |_, allocation| allocation.context() == context)
        .map(|it| it.1)
        .collect()
}

static HELD: Held<RwLockWriteGuard<'static, Live>> = Held::new();

/// Keeps every other thread from the map until this one calls [`release`], so that a fork in between does not copy it
/// half changed.
pub fn hold() {
    // SAFETY: `HELD` goes with the map's lock.
    unsafe { HELD.put(LIVE.write()) };
}

/// Ends what [`hold`] began on this thread, or on the one that this one is a copy of.
pub fn release() {
    // SAFETY: this thread took the lock in `hold`, or is a copy of the one that did.
    drop(unsafe { HELD.take() });
}
