//! Sizes of tests.

/// A size of a test: `usual`, and a smaller one under Miri, which is about ten thousand times slower.
pub const fn scaled(usual: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { usual }
}
