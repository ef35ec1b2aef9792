//! Drivers and their devices.

mod clock;
mod description;
mod devices;
mod driver;
mod loss;
mod memory_state;
mod properties;

pub(crate) use clock::Clocks;
pub use driver::Driver;
pub use memory_state::MemoryState;
pub use properties::Device;
