//! Small allocations: pages of larger mappings. Each has pages of its own, so that it can be shared with another process without
//! a neighbour. The allocator's metadata is kept outside of the mappings, so neither a process that shares pages nor a write past
//! the end of an allocation can corrupt it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use offset_allocator::{Allocation, Allocator};
use zeusm_process::{AtFork, ForkLock};

use super::platform::mapping::Mapping;
use crate::system::PAGE;

/// The length of a mapping for small allocations: room for several of the largest.
const LENGTH: usize = 2 << 20;
/// The most allocations and free ranges of a mapping; each costs some twenty bytes of metadata, used or not.
const MOST: u32 = (LENGTH / PAGE) as u32 + 2;

/// Pages of an arena, which are free again when it is dropped.
pub struct Suballocation {
    /// The arena's mapping.
    pub mapping: Arc<Mapping>,
    range: Allocation<u16>,
}

struct Arena {
    mapping: Arc<Mapping>,
    free: Allocator<u16>,
    suballocations: usize,
}

/// All arenas by address, and the one that served last.
struct Arenas {
    all: BTreeMap<usize, Arena>,
    latest: usize,
}

static ARENAS: ForkLock<Arenas> = ForkLock::new(Arenas {
    all: BTreeMap::new(),
    latest: 0,
});

impl Suballocation {
    /// At least `size` bytes, with the range of their pages in the arena's mapping; `None` when there are none.
    pub fn new(size: usize) -> Option<(Self, Range<usize>)> {
        let pages = u16::try_from(size.div_ceil(PAGE)).ok()?;
        let mut arenas = ARENAS.lock();
        let (mapping, range) = match arenas.allocate(pages) {
            Some(found) => found,
            None => {
                arenas.grow()?;
                arenas.allocate(pages)?
            }
        };
        let start = usize::from(range.offset) * PAGE;
        let end = start + usize::from(pages) * PAGE;
        Some((Self { mapping, range }, start..end))
    }
}

impl Arenas {
    fn allocate(&mut self, pages: u16) -> Option<(Arc<Mapping>, Allocation<u16>)> {
        let latest = self
            .all
            .get_mut(&self.latest)
            .and_then(|it| it.allocate(pages));
        latest.or_else(|| {
            let (address, found) = self
                .all
                .iter_mut()
                .find_map(|(address, arena)| Some((*address, arena.allocate(pages)?)))?;
            self.latest = address;
            Some(found)
        })
    }

    fn grow(&mut self) -> Option<()> {
        let mapping = Arc::new(Mapping::anonymous(LENGTH, PAGE)?);
        self.latest = mapping.address();
        let arena = Arena {
            free: Allocator::with_max_allocs((LENGTH / PAGE) as u32, MOST),
            mapping,
            suballocations: 0,
        };
        self.all.insert(self.latest, arena);
        Some(())
    }

    /// Frees a suballocation. Returns an arena that is no longer needed, for the caller to drop without the lock.
    fn release(&mut self, suballocation: &Suballocation) -> Option<Arena> {
        let address = suballocation.mapping.address();
        let arena = self.all.get_mut(&address)?;
        arena.free.free(suballocation.range);
        arena.suballocations -= 1;
        // One empty arena is kept, so that a program that allocates and frees in turns does not map and unmap each
        // time.
        let empty = |arena: &Arena| arena.suballocations == 0;
        let needless = empty(arena) && self.all.values().filter(|it| empty(it)).count() > 1;
        needless.then(|| self.all.remove(&address)).flatten()
    }
}

impl Arena {
    fn allocate(&mut self, pages: u16) -> Option<(Arc<Mapping>, Allocation<u16>)> {
        let range = self.free.allocate(pages.into())?;
        self.suballocations += 1;
        Some((Arc::clone(&self.mapping), range))
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
