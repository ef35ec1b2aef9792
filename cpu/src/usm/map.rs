//! All live allocations, ordered by address, so that any pointer finds its allocation in O(log n).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::allocation::Allocation;

static LIVE: RwLock<BTreeMap<usize, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

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
