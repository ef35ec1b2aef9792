//! What the machine is: read once from the system, told truthfully in the properties.

pub mod memory;
pub mod processor;
