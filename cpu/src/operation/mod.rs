//! The operations of the core API: one file for each.

mod copy;
mod fill;
mod region;
mod reset;
mod timestamps;

pub use copy::Copy;
pub use fill::Fill;
pub use region::{Layout, Region, RegionCopy};
pub use reset::Reset;
pub use timestamps::{QueryTimestamps, WriteTimestamp};

/// Up to this many bytes are moved by the thread that appends: handing them to a worker takes as long.
const SHORT: usize = 512 << 10;
/// How many bytes of a large operation a worker takes at a time.
const PART: usize = 4 << 20;
