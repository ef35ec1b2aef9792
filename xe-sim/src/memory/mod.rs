//! Buffer objects and the GPU address spaces into which they are bound.

mod budget;
mod buffer;
mod space;
mod user;

pub(crate) use budget::at_most;
pub(crate) use buffer::{Buffer, Vram};
pub(crate) use space::{AddressSpace, Backing, PageFault};
pub(crate) use user::{read_user, write_user};
