//! The context of each Level Zero allocation that zeusm made. Drivers may look pointers up in all their contexts, and return
//! the attributes of another context's allocation.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;
use zeusm_process::{ForkLock, held_at_fork};

use crate::history::Place;
use crate::pool::{self, HeldSlab};

struct Registered {
    end: usize,
    place: Place,
    /// Whether it belongs to no pool.
    is_unpooled: bool,
    /// Whether it has no memory at the moment.
    is_suspended: bool,
    /// Whether the pages are the program's.
    is_in_place: bool,
}

type Table = BTreeMap<usize, Registered>;

/// By base address; addresses are unique in the process, whatever their context. A fork's child inherits the table.
static REGISTERED: ForkLock<Table> = ForkLock::new(Table::new());
held_at_fork!(REGISTERED);

/// Registers an allocation.
pub(crate) fn register(base: usize, size: usize, place: Place, is_unpooled: bool) {
    let registered = Registered {
        end: base + size,
        place,
        is_unpooled,
        is_suspended: false,
        is_in_place: false,
    };
    REGISTERED.write().insert(base, registered);
}

/// Unregisters an allocation, before its address can be allocated again.
pub(crate) fn unregister(base: usize) {
    if SUSPENDED.load(Ordering::Relaxed) > 0 {
        set_suspended(base, false);
    }
    REGISTERED.write().remove(&base);
}

/// How many allocations have no memory, which is read without the lock.
static SUSPENDED: AtomicUsize = AtomicUsize::new(0);

/// Says whether an allocation has no memory.
pub(super) fn set_suspended(base: usize, is_suspended: bool) {
    let mut table = REGISTERED.write();
    let Some(registered) = table.get_mut(&base) else {
        return;
    };
    match (
        mem::replace(&mut registered.is_suspended, is_suspended),
        is_suspended,
    ) {
        (false, true) => drop(SUSPENDED.fetch_add(1, Ordering::Relaxed)),
        (true, false) => drop(SUSPENDED.fetch_sub(1, Ordering::Relaxed)),
        _ => {}
    }
}

/// Whether `address` is memory of a pool that is [suspended](crate::pool::Pool::suspend), and must not be used.
#[must_use]
#[inline]
pub fn is_suspended(address: usize) -> bool {
    SUSPENDED.load(Ordering::Relaxed) > 0 && is_in_suspended(address)
}

#[cold]
fn is_in_suspended(address: usize) -> bool {
    is_at(address, |found| found.is_suspended)
}

/// The memory that this process holds: its [pools' slabs](pool::slabs), then each allocation of no pool, as a slab of one block.
#[must_use]
pub fn held() -> Vec<HeldSlab> {
    let mut held = pool::slabs();
    let table = REGISTERED.read();
    let unpooled = table.iter().filter(|(_, found)| found.is_unpooled);
    held.extend(unpooled.map(|(&base, found)| {
        let block = base..found.end;
        HeldSlab {
            range: block.clone(),
            place: found.place,
            block_size: 0,
            used_bytes: block.len(),
            blocks: vec![block],
        }
    }));
    held
}

/// Registers pages of the program, unless an allocation has any of their addresses; whether it has.
pub(super) fn claim(pages: &Range<usize>, place: Place) -> bool {
    let mut table = REGISTERED.write();
    let last = table.range(..pages.end).next_back();
    let is_free = last.is_none_or(|(_, found)| found.end <= pages.start);
    if is_free {
        let registered = Registered {
            end: pages.end,
            place,
            is_unpooled: false,
            is_suspended: false,
            is_in_place: true,
        };
        table.insert(pages.start, registered);
    }
    is_free
}

/// Whether `address` is in pages of the program that [`Allocation::from_host`](super::Allocation::from_host) uses in place.
#[must_use]
pub fn is_in_place(address: usize) -> bool {
    is_at(address, |found| found.is_in_place)
}

/// Whether `address` is in an allocation of another context than `context`.
pub(crate) fn is_in_another_context(address: usize, context: sys::ze_context_handle_t) -> bool {
    is_at(address, |found| found.place.context != context.addr())
}

/// Whether an allocation has `address`, and `is` is true of it.
fn is_at(address: usize, is: impl FnOnce(&Registered) -> bool) -> bool {
    let table = REGISTERED.read();
    let found = table.range(..=address).next_back();
    found.is_some_and(|(_, found)| address < found.end && is(found))
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
