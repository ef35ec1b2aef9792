//! The map of live allocations by address: finds the allocation of any pointer in O(log n).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::allocation::Allocation;
use crate::process::at_fork::{AtFork, ForkLock};
use crate::process::sync::RwLock;

/// Allocations by the address of their first byte.
type Live = BTreeMap<usize, Arc<Allocation>>;

static LIVE: ForkLock<RwLock<Live>> = ForkLock::new(RwLock::new(BTreeMap::new()));

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

/// The map's lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &LIVE
}
