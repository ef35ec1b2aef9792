//! The size classes: eight between a power of two and the next, as far as the alignment allows.

/// The alignment in bytes that every block has, requested or not: a cache line.
pub const SMALLEST_ALIGNMENT: usize = 64;

/// The largest alignment in bytes that a pool requests from its provider: 2 MiB, a large page of every Intel GPU.
pub const LARGEST_ALIGNMENT: usize = 2 << 20;

/// The largest block in bytes that shares a slab with others.
pub const LARGEST_CLASS: usize = 1 << 20;

/// The number of size classes between a power of two and the next; fewer where they would be less than
/// [`SMALLEST_ALIGNMENT`] apart.
const STEPS: usize = 8;

/// The classes up to this are multiples of [`SMALLEST_ALIGNMENT`].
const LINEAR: usize = 2 * STEPS * SMALLEST_ALIGNMENT;

/// The number of size classes.
pub(super) const COUNT: usize = 2 * STEPS + (LARGEST_CLASS / LINEAR).ilog2() as usize * STEPS;

/// The sizes in bytes: 64, 128, 192, ... 1024, 1152, 1280, ... 1 MiB.
pub(super) const SIZES: [usize; COUNT] = {
    let mut sizes = [0; COUNT];
    let mut class = 0;
    while class < COUNT {
        sizes[class] = match class.checked_sub(2 * STEPS) {
            None => (class + 1) * SMALLEST_ALIGNMENT,
            Some(beyond) => (LINEAR << (beyond / STEPS)) / STEPS * (STEPS + 1 + beyond % STEPS),
        };
        class += 1;
    }
    sizes
};

/// The smallest class whose blocks hold `size` bytes at `alignment` (0 or a power of two); `None` beyond the largest.
pub(super) fn class_of(size: usize, alignment: usize) -> Option<usize> {
    // The class of a multiple of the alignment is one, too: it is the size itself, or a multiple of a larger power of two.
    let beyond = alignment.saturating_sub(1);
    let size = size.max(1).checked_add(beyond)? & !beyond;
    (size <= LARGEST_CLASS).then(|| smallest_holding(size))
}

/// `size` is at most [`LARGEST_CLASS`], and not 0.
fn smallest_holding(size: usize) -> usize {
    let last = size - 1;
    if size <= LINEAR {
        return last / SMALLEST_ALIGNMENT;
    }
    let octave = last.ilog2() as usize;
    let steps = last >> (octave - STEPS.ilog2() as usize);
    (octave - LINEAR.ilog2() as usize + 1) * STEPS + steps
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
        assert_eq!(SIZES[..4], [64, 128, 192, 256]);
        assert_eq!(SIZES[14..19], [960, 1024, 1152, 1280, 1408]);
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
