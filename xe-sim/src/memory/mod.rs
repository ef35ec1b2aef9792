//! Buffer objects and the GPU address spaces into which they are bound.

mod budget;
mod buffer;
mod ranges;
mod space;
mod user;

pub(crate) use budget::at_most;
pub(crate) use buffer::{Buffer, Vram};
pub(crate) use ranges::{Backing, PageFault};
pub(crate) use space::AddressSpace;
pub(crate) use user::{check_user, read_user, write_user};
