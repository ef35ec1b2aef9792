//! The operations of the core API except for launches, one file for each.

mod bytes;
mod copy;
mod fill;
mod host_function;
mod region;
mod reset;
mod split;
mod timestamps;

pub use copy::Copy;
pub use fill::Fill;
pub use host_function::HostFunction;
pub use region::{Cuboid, Layout, Region, RegionCopy};
pub use reset::Reset;
pub use timestamps::{QueryTimestamps, WriteTimestamp};
