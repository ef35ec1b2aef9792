//! Which block an address lies in, for every pool of the process.
//!
//! Level Zero knows chunks; only the pool knows the blocks in them. Addresses are unique in the process, whatever
//! context or kind they are of, so one table serves. The thread that forks holds its lock meanwhile, so that a child has
//! the table whole: it goes on with what its parent's pools had cut, and adds its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::provider::Chunk;
use super::slab::Slab;
use crate::process::{RwLock, held_at_fork};

struct Served {
    end: usize,
    /// Gone while the chunk is cached.
    slab: Weak<Slab>,
}

type Table = BTreeMap<usize, Served>;

/// No thread that holds it calls out of this module.
static SERVED: RwLock<Table> = RwLock::new(Table::new());

held_at_fork!(SERVED: Table);

/// What pools know of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is no pool's.
    Elsewhere,
    /// A pool holds it, and nobody uses it.
    Unused,
    /// It lies in, or in the padding behind, an allocation of these addresses.
    Used(Range<usize>),
}

/// What the pools of this process know of `address`, and what they knew in its parent at the fork.
#[must_use]
pub fn find(address: usize) -> Found {
    let served = SERVED.read();
    let Some((_, found)) = served.range(..=address).next_back() else {
        return Found::Elsewhere;
    };
    if address >= found.end {
        return Found::Elsewhere;
    }
    let slab = found.slab.upgrade();
    slab.and_then(|slab| slab.used_at(address))
        .map_or(Found::Unused, Found::Used)
}

/// A chunk goes into service as `slab`.
pub(super) fn serve(slab: &Arc<Slab>) {
    let Chunk { base, size } = slab.chunk();
    let base = base.addr().get();
    let served = Served {
        end: base + size,
        slab: Arc::downgrade(slab),
    };
    SERVED.write().insert(base, served);
}

/// A chunk goes back to its provider.
pub(super) fn forget(chunk: Chunk) {
    SERVED.write().remove(&chunk.base.addr().get());
}
