//! Drivers that work in one process only.

use std::sync::atomic::{AtomicU32, Ordering};

use zeusm_process::generation;

/// The generation in which the driver works, or any.
static DRIVER_GENERATION: AtomicU32 = AtomicU32::new(ANY);
const ANY: u32 = 0;

/// Confines the driver to this process. Level Zero's drivers do not work in a fork's child, which shares their files and
/// queues with its parent; zeusm's CPU runtime does.
pub(crate) fn confine_driver() {
    DRIVER_GENERATION.store(generation(), Ordering::Relaxed);
}

/// Whether this process may call the driver.
pub(crate) fn has_driver() -> bool {
    let allowed = DRIVER_GENERATION.load(Ordering::Relaxed);
    allowed == ANY || allowed == generation()
}
