//! Room for short-lived mappings.

use crate::memory::room::usable;

/// Those below this size need no reading of what is available.
const SMALL: u64 = 4 << 20;

/// Whether the machine has `size` bytes.
pub fn has_room_for(size: u64) -> bool {
    size < SMALL || size <= usable()
}
