//! The context of each Level Zero allocation that zeusm made. Drivers may look pointers up in all their contexts, and return
//! the attributes of another context's allocation.

use std::collections::BTreeMap;
use std::ops::Range;

use level_zero_sys as sys;
use zeusm_process::{ForkLock, RwLock, held_at_fork};

use crate::history::Place;

struct Registered {
    end: usize,
    place: Place,
    /// Whether it belongs to no pool.
    is_unpooled: bool,
}

type Table = BTreeMap<usize, Registered>;

/// By base address; addresses are unique in the process, whatever their context. A fork's child inherits the table.
static REGISTERED: ForkLock<RwLock<Table>> = ForkLock::new(RwLock::new(Table::new()));
held_at_fork!(REGISTERED);

/// Registers an allocation.
pub(crate) fn register(base: usize, size: usize, place: Place, is_unpooled: bool) {
    let registered = Registered {
        end: base + size,
        place,
        is_unpooled,
    };
    REGISTERED.write().insert(base, registered);
}

/// Unregisters an allocation, before its address can be allocated again.
pub(crate) fn unregister(base: usize) {
    REGISTERED.write().remove(&base);
}

/// An allocation that belongs to no pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnpooledBlock {
    /// Its addresses.
    pub range: Range<usize>,
    /// Its place.
    pub place: Place,
}

/// The allocations of this process that belong to no pool, in the order of the addresses.
#[must_use]
pub fn unpooled() -> Vec<UnpooledBlock> {
    let table = REGISTERED.read();
    let unpooled = table.iter().filter(|(_, found)| found.is_unpooled);
    let blocks = unpooled.map(|(&base, found)| UnpooledBlock {
        range: base..found.end,
        place: found.place,
    });
    blocks.collect()
}

/// Whether `address` is in an allocation of another context than `context`.
pub(crate) fn is_in_another_context(address: usize, context: sys::ze_context_handle_t) -> bool {
    let table = REGISTERED.read();
    table
        .range(..=address)
        .next_back()
        .is_some_and(|(_, found)| address < found.end && found.place.context != context.addr())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
