//! The size classes: powers of two and the midpoints between them.

/// The alignment in bytes that every block has, requested or not: a cache line.
pub const SMALLEST_ALIGNMENT: usize = 64;

/// The largest alignment in bytes that a pool requests from its provider: 2 MiB, a large page of every Intel GPU.
pub const LARGEST_ALIGNMENT: usize = 2 << 20;

/// The largest block in bytes that shares a slab with others.
pub const LARGEST_CLASS: usize = 1 << 20;

/// The number of size classes.
pub(super) const COUNT: usize = 28;

/// The sizes in bytes: 64, 128, 192, 256, 384, 512, ... 1 MiB. 96 is left out, as it is no multiple of the alignment.
pub(super) const SIZES: [usize; COUNT] = {
    let mut sizes = [64; COUNT];
    let mut class = 1;
    while class < COUNT {
        let doubled = 128 << ((class - 1) / 2);
        sizes[class] = if class % 2 == 1 {
            doubled
        } else {
            doubled + doubled / 2
        };
        class += 1;
    }
    sizes
};

/// The smallest class whose blocks hold `size` bytes at `alignment` (0 or a power of two); `None` beyond the largest.
pub(super) fn class_of(size: usize, alignment: usize) -> Option<usize> {
    let size = size.max(alignment);
    if size > LARGEST_CLASS {
        return None;
    }
    let class = smallest_holding(size);
    // A midpoint is only aligned to a third of itself; the power of two after it is at least `alignment`.
    Some(class + usize::from(alignment > 1 && !SIZES[class].is_multiple_of(alignment)))
}

/// `size` is at most [`LARGEST_CLASS`].
fn smallest_holding(size: usize) -> usize {
    if size <= 128 {
        return usize::from(size > 64);
    }
    let last = size - 1;
    let power = last.ilog2() as usize;
    let above_midpoint = last >> (power - 1) & 1;
    2 * (power - 7) + 2 + above_midpoint
}

/// The largest power of two that every block of a class is aligned to when its slab is.
pub(super) fn natural_alignment(class: usize) -> usize {
    1 << SIZES[class].trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_to_the_largest() {
        assert!(SIZES.is_sorted());
        assert_eq!(SIZES[..7], [64, 128, 192, 256, 384, 512, 768]);
        assert_eq!(SIZES[COUNT - 1], LARGEST_CLASS);
        assert!(SIZES.iter().all(|size| size % SMALLEST_ALIGNMENT == 0));
    }

    #[test]
    fn the_smallest_class_that_fits_is_used() {
        // Miri is about a thousand times slower: it gets the bounds of the classes only.
        let bounds = SIZES
            .into_iter()
            .flat_map(|size| [size - 1, size, size + 1]);
        let sizes: Vec<_> = if cfg!(miri) {
            bounds.collect()
        } else {
            (0..=LARGEST_CLASS).collect()
        };
        for size in sizes {
            let class = class_of(size, 0);
            let expected = SIZES.iter().position(|&holds| holds >= size);
            assert_eq!(class, expected, "{size} bytes");
        }
        assert_eq!(class_of(LARGEST_CLASS + 1, 0), None);
        assert_eq!(class_of(usize::MAX, 64), None);
    }

    #[test]
    fn alignment_raises_the_class() {
        for power in 0..=20 {
            let alignment = 1 << power;
            for size in [1, 65, 100, 129, 193, 300, 700, 5000, 70_000, 600_000] {
                let Some(class) = class_of(size, alignment) else {
                    panic!("{size} bytes at {alignment}");
                };
                assert!(SIZES[class] >= size);
                assert!(natural_alignment(class) >= alignment);
            }
        }
        assert_eq!(class_of(64, 2 << 20), None);
    }
}
