//! The CPU runtime's clock.

#[path = "../../../cpu/src/system/clock.rs"]
pub mod clock;
