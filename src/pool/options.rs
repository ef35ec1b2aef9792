//! What a pool can be told.

/// Limits and growth of a pool.
///
/// ```
/// # use zeusm::pool::Options;
/// let options = Options { limit: Some(1 << 30), ..Options::default() };
/// assert_eq!(options.growth.largest_slab, 2 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes that the pool may hold from its provider, in use or not; `None` leaves it to the provider.
    pub limit: Option<usize>,
    /// The most bytes of unused large pieces that are kept; the oldest beyond that go back to the provider.
    pub largest_cache: usize,
    /// How the pool grows.
    pub growth: Growth,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: None,
            largest_cache: 512 << 20,
            growth: Growth::default(),
        }
    }
}

/// How much a pool takes from its provider when it runs out of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The size in bytes of a class's first slab, where a few blocks fit into that.
    pub first_slab: usize,
    /// The largest slab in bytes. A slab holds one block at least, so blocks above this have a slab each.
    pub largest_slab: usize,
    /// The next slab of a class is its slabs' sum divided by this, within the two bounds.
    pub divisor: usize,
    /// By how many percent of the most bytes ever in service the pool may exceed them before it gives unused pieces
    /// back rather than taking more, once it holds [`unchecked`](Self::unchecked) bytes.
    pub overhead_percent: usize,
    /// Up to how many bytes the overhead does not matter.
    pub unchecked: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            first_slab: 64 << 10,
            largest_slab: 2 << 20,
            divisor: 8,
            overhead_percent: 3,
            unchecked: 32 << 20,
        }
    }
}

/// The size from which on a block has a slab of its own: one that comes and goes with its block serves better than one
/// that a single block keeps from going.
const LONELY: usize = 256 << 10;

impl Growth {
    /// How many blocks of `size` bytes the next slab of a class gets that has `held` bytes of slabs.
    pub(super) fn blocks(&self, size: usize, held: usize) -> usize {
        if size >= LONELY {
            return 1;
        }
        let few = size * 4;
        let least = self.first_slab.max(few).min(self.largest_slab);
        let bytes = (held / self.divisor.max(1)).clamp(least, self.largest_slab);
        (bytes / size).clamp(1, u32::MAX as usize / 2)
    }
}
