//! Small allocations, suballocated from blocks. The allocator's metadata is kept outside of the block, so neither a
//! process that maps the block nor a write past the end of an allocation can corrupt it.

use std::collections::BTreeMap;
use std::sync::Arc;

use offset_allocator::{Allocation, Allocator};
use zeusm_process::{AtFork, ForkLock, Mutex};

use super::block::Block;
use super::{MIN_ALIGNMENT, PAGE};

/// The length of a block for small allocations: room for several of the largest, and little to move at an export.
const LENGTH: usize = 2 << 20;
/// The most suballocations of a block; each costs some twenty bytes of metadata, used or not.
const MAX_SUBALLOCATIONS: u32 = 8192;

/// A part of a block, freed when it is dropped.
pub struct Suballocation {
    block: Arc<Block>,
    address: usize,
    range: Allocation<u16>,
}

struct Arena {
    block: Arc<Block>,
    free: Allocator<u16>,
    suballocations: usize,
}

/// All arenas by address, and the one that served last.
struct Arenas {
    all: BTreeMap<usize, Arena>,
    latest: usize,
}

static ARENAS: ForkLock<Mutex<Arenas>> = ForkLock::new(Mutex::new(Arenas {
    all: BTreeMap::new(),
    latest: 0,
}));

impl Suballocation {
    /// `size` bytes, aligned to a power of two of at most a page; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        debug_assert!(alignment <= PAGE);
        let slack = alignment.saturating_sub(MIN_ALIGNMENT);
        let units = u32::try_from((size + slack).div_ceil(MIN_ALIGNMENT)).ok()?;
        let mut arenas = ARENAS.lock();
        let (block, range) = match arenas.allocate(units) {
            Some(found) => found,
            None => {
                arenas.grow()?;
                arenas.allocate(units)?
            }
        };
        let start = block.address() + usize::from(range.offset) * MIN_ALIGNMENT;
        Some(Self {
            address: start.next_multiple_of(alignment.max(MIN_ALIGNMENT)),
            block,
            range,
        })
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The block that it is a part of.
    pub fn block(&self) -> &Block {
        &self.block
    }
}

impl Arenas {
    fn allocate(&mut self, units: u32) -> Option<(Arc<Block>, Allocation<u16>)> {
        let latest = self
            .all
            .get_mut(&self.latest)
            .and_then(|it| it.allocate(units));
        latest.or_else(|| {
            let (address, found) = self
                .all
                .iter_mut()
                .find_map(|(address, arena)| Some((*address, arena.allocate(units)?)))?;
            self.latest = address;
            Some(found)
        })
    }

    fn grow(&mut self) -> Option<()> {
        let block = Arc::new(Block::new(LENGTH, PAGE)?);
        self.latest = block.address();
        let arena = Arena {
            free: Allocator::with_max_allocs((LENGTH / MIN_ALIGNMENT) as u32, MAX_SUBALLOCATIONS),
            block,
            suballocations: 0,
        };
        self.all.insert(self.latest, arena);
        Some(())
    }

    /// Frees a suballocation. Returns an arena that is no longer needed, for the caller to drop without the lock.
    fn release(&mut self, suballocation: &Suballocation) -> Option<Arena> {
        let address = suballocation.block.address();
        let arena = self.all.get_mut(&address)?;
        arena.free.free(suballocation.range);
        arena.suballocations -= 1;
        // One empty arena is kept, so that a program that allocates and frees in turns does not map and unmap each
        // time.
        let kept = |arena: &Arena| arena.suballocations == 0 && !arena.block.is_closed();
        let needless = arena.suballocations == 0
            && (arena.block.is_closed() || self.all.values().filter(|it| kept(it)).count() > 1);
        needless.then(|| self.all.remove(&address)).flatten()
    }
}

impl Arena {
    fn allocate(&mut self, units: u32) -> Option<(Arc<Block>, Allocation<u16>)> {
        if self.block.is_closed() {
            return None;
        }
        let range = self.free.allocate(units)?;
        self.suballocations += 1;
        Some((Arc::clone(&self.block), range))
    }
}

impl Drop for Suballocation {
    fn drop(&mut self) {
        let needless = ARENAS.lock().release(self);
        drop(needless);
    }
}

/// The arenas' lock, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    &ARENAS
}

impl std::fmt::Debug for Suballocation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "Suballocation({:#x} of {:?})",
            self.address, self.block
        )
    }
}
