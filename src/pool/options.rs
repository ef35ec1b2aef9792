//! The options of a pool.

/// Limits and growth of a pool.
///
/// ```
/// # use zeusm::pool::Options;
/// let options = Options { limit: Some(1 << 30), ..Options::default() };
/// assert_eq!(options.growth.largest_slab, 2 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The maximum number of bytes that the pool may hold from its provider, in use or not; `None` leaves it to the
    /// provider.
    pub limit: Option<usize>,
    /// The maximum number of bytes of free large chunks that are cached; the oldest beyond that go back to the provider.
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

/// The sizes of the chunks that a pool allocates from its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The size in bytes of a size class's first slab; more for a block that is larger.
    pub first_slab: usize,
    /// The largest slab in bytes. A slab holds at least one block, so each block above this size has its own slab.
    pub largest_slab: usize,
    /// The next slab of a class has the sum of its slabs divided by this, within the two bounds.
    pub divisor: usize,
    /// The overhead that the pool may hold above the peak of the bytes in use, in percent. Above it, the pool returns free
    /// chunks to the provider before it allocates new ones.
    pub overhead_percent: usize,
    /// The pool's total in bytes up to which the overhead is not limited.
    pub overhead_threshold: usize,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            first_slab: 64 << 10,
            largest_slab: 2 << 20,
            divisor: 8,
            overhead_percent: 0,
            overhead_threshold: 32 << 20,
        }
    }
}

/// The size from which each block has a slab of its own. A slab of few large blocks could not be released while any one of
/// them is in use; a slab of one block can be reused or released as soon as that block is freed.
const SINGLE_BLOCK_SLAB_FROM: usize = 256 << 10;

impl Growth {
    /// The number of blocks of `size` bytes in the next slab of a class whose slabs have `held` bytes.
    pub(super) fn blocks(&self, size: usize, held: usize) -> usize {
        if size >= SINGLE_BLOCK_SLAB_FROM {
            return 1;
        }
        let least = self.first_slab.max(size).min(self.largest_slab);
        let bytes = (held / self.divisor.max(1)).clamp(least, self.largest_slab);
        (bytes / size).clamp(1, u32::MAX as usize / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_a_slab_have_numbers_of_32_bits() {
        let growth = Growth {
            first_slab: usize::MAX,
            largest_slab: usize::MAX,
            ..Growth::default()
        };
        assert_eq!(growth.blocks(64, 0), u32::MAX as usize / 2);
    }
}
