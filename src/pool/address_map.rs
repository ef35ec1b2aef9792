//! Maps an address to the block that contains it, for every pool of the process.
//!
//! Level Zero reports a pool's chunks; only the pool has the blocks in them. Addresses are unique in the process, whatever
//! their context or kind, so one table is enough. The thread that forks holds the table's lock during the fork: a child gets
//! a consistent table, with the slabs of its parent's pools, and adds its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use zeusm_process::{ForkLock, held_at_fork};

use super::provider::Chunk;
use super::slab::{Slab, SlabKind};
use crate::history::Place;

struct Registered {
    end: usize,
    place: Place,
    /// The weak reference is dead while the chunk is cached.
    slab: Weak<Slab>,
}

type Table = BTreeMap<usize, Registered>;

/// A thread that holds the lock does not call other modules.
static REGISTERED: ForkLock<Table> = ForkLock::new(Table::new());

held_at_fork!(REGISTERED);

/// The result of a lookup of an address in the pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The address belongs to no pool.
    NotPooled,
    /// The address belongs to a pool, and is not allocated.
    Free,
    /// The address is in an allocation with this range of addresses, or in the padding behind it.
    Allocated(Range<usize>),
}

/// Looks `address` up in the pools of this process, and in those that its parent had at the fork.
#[must_use]
pub fn lookup(address: usize) -> Lookup {
    let table = REGISTERED.read();
    let Some((_, found)) = table.range(..=address).next_back() else {
        return Lookup::NotPooled;
    };
    if address >= found.end {
        return Lookup::NotPooled;
    }
    let slab = found.slab.upgrade();
    slab.and_then(|slab| slab.allocated_range(address))
        .map_or(Lookup::Free, Lookup::Allocated)
}

/// Memory that a pool holds from its provider, or an allocation of no pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldSlab {
    /// Its addresses.
    pub range: Range<usize>,
    /// Its place, with the number of the pool.
    pub place: Place,
    /// The size of its blocks in bytes; 0 for a single block, and for memory that is not divided at the moment.
    pub block_size: usize,
    /// Bytes of the blocks in use, rounded up to the block's size.
    pub used_bytes: usize,
    /// The requested bytes of each block in use.
    pub blocks: Vec<Range<usize>>,
}

/// The memory that the pools of this process hold, and what a fork's child inherited, in the order of the addresses.
#[must_use]
pub fn slabs() -> Vec<HeldSlab> {
    let table = REGISTERED.read();
    let held = table.iter().map(|(&base, registered)| {
        let slab = registered.slab.upgrade();
        let blocks: Vec<_> = slab
            .iter()
            .flat_map(|slab| slab.allocated_ranges())
            .collect();
        let of_class = slab
            .as_ref()
            .filter(|slab| slab.kind != SlabKind::Large)
            .map_or(0, |slab| slab.block_size);
        HeldSlab {
            range: base..registered.end,
            place: registered.place,
            block_size: of_class,
            used_bytes: blocks.len() * slab.map_or(0, |slab| slab.block_size),
            blocks,
        }
    });
    held.collect()
}

/// Registers the chunk of a slab, which is memory of `place`.
pub(super) fn register(slab: &Arc<Slab>, place: Place) {
    let Chunk { base, size } = slab.chunk;
    let base = base.addr().get();
    let registered = Registered {
        end: base + size,
        place,
        slab: Arc::downgrade(slab),
    };
    REGISTERED.write().insert(base, registered);
}

/// Unregisters a chunk that is returned to its provider.
pub(super) fn unregister(chunk: Chunk) {
    REGISTERED.write().remove(&chunk.base.addr().get());
}
