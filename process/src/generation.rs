//! The number that tells a process from its parent and from its children.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between the process that loaded the library and this one, plus one.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The generation of this process, which differs from its parent's and its children's; never 0.
#[must_use]
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
at_fork!(None, None, Some(count));
