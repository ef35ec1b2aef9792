//! Small memory, cut from blocks. What is free is written down beside a block and not in it, so that nobody who maps
//! the block, or writes past the end of an allocation, can lead the allocator astray.

use std::collections::BTreeMap;
use std::sync::Arc;

use offset_allocator::{Allocation, Allocator};

use super::block::Block;
use super::{LEAST_ALIGNMENT, PAGE};
use crate::process::sync::{Held, Mutex, MutexGuard};

/// Bytes of a block that small memory is cut from: room for several of the largest, little to move when exported.
const LENGTH: usize = 2 << 20;
/// Pieces of one block at most; each costs twenty-odd bytes, used or not.
const MOST_PIECES: u32 = 8192;

/// A piece of a block, which is free again when it is dropped.
pub struct Piece {
    block: Arc<Block>,
    address: usize,
    cut: Allocation<u16>,
}

struct Arena {
    block: Arc<Block>,
    free: Allocator<u16>,
    pieces: usize,
}

/// All arenas by address, and the one that had room last.
struct Arenas {
    all: BTreeMap<usize, Arena>,
    latest: usize,
}

static ARENAS: Mutex<Arenas> = Mutex::new(Arenas {
    all: BTreeMap::new(),
    latest: 0,
});

impl Piece {
    /// `size` bytes, aligned to a power of two of at most a page; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        debug_assert!(alignment <= PAGE);
        let slack = alignment.saturating_sub(LEAST_ALIGNMENT);
        let units = u32::try_from((size + slack).div_ceil(LEAST_ALIGNMENT)).ok()?;
        let mut arenas = ARENAS.lock();
        let (block, cut) = match arenas.cut(units) {
            Some(found) => found,
            None => {
                arenas.grow()?;
                arenas.cut(units)?
            }
        };
        let start = block.address() + usize::from(cut.offset) * LEAST_ALIGNMENT;
        Some(Self {
            address: start.next_multiple_of(alignment.max(LEAST_ALIGNMENT)),
            block,
            cut,
        })
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.address
    }

    /// What it is a piece of.
    pub fn block(&self) -> &Block {
        &self.block
    }
}

impl Arenas {
    fn cut(&mut self, units: u32) -> Option<(Arc<Block>, Allocation<u16>)> {
        let latest = self.all.get_mut(&self.latest).and_then(|it| it.cut(units));
        latest.or_else(|| {
            let (address, found) = self
                .all
                .iter_mut()
                .find_map(|(address, arena)| Some((*address, arena.cut(units)?)))?;
            self.latest = address;
            Some(found)
        })
    }

    fn grow(&mut self) -> Option<()> {
        let block = Arc::new(Block::new(LENGTH, PAGE)?);
        self.latest = block.address();
        let arena = Arena {
            free: Allocator::with_max_allocs((LENGTH / LEAST_ALIGNMENT) as u32, MOST_PIECES),
            block,
            pieces: 0,
        };
        self.all.insert(self.latest, arena);
        Some(())
    }

    /// Frees a piece; the arena that is not needed any more, for the caller to drop.
    fn take_back(&mut self, piece: &Piece) -> Option<Arena> {
        let address = piece.block.address();
        let arena = self.all.get_mut(&address)?;
        arena.free.free(piece.cut);
        arena.pieces -= 1;
        // One empty arena is kept, lest a program that allocates and frees at its edge maps and unmaps each time.
        let kept = |arena: &Arena| arena.pieces == 0 && !arena.block.is_closed();
        let needless = arena.pieces == 0
            && (arena.block.is_closed() || self.all.values().filter(|it| kept(it)).count() > 1);
        needless.then(|| self.all.remove(&address)).flatten()
    }
}

impl Arena {
    fn cut(&mut self, units: u32) -> Option<(Arc<Block>, Allocation<u16>)> {
        if self.block.is_closed() {
            return None;
        }
        let cut = self.free.allocate(units)?;
        self.pieces += 1;
        Some((Arc::clone(&self.block), cut))
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let needless = ARENAS.lock().take_back(self);
        drop(needless);
    }
}

static HELD: Held<MutexGuard<'static, Arenas>> = Held::new();

/// Keeps every other thread from cutting and freeing until this one calls [`release`], so that a fork in between does
/// not copy an arena half changed.
pub fn hold() {
    // SAFETY: `HELD` goes with the arenas' lock.
    unsafe { HELD.put(ARENAS.lock()) };
}

/// Ends what [`hold`] began on this thread, or on the one that this one is a copy of.
pub fn release() {
    // SAFETY: this thread took the lock in `hold`, or is a copy of the one that did.
    drop(unsafe { HELD.take() });
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Piece({:#x} of {:?})", self.address, self.block)
    }
}
