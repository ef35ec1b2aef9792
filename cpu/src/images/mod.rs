//! Images and samplers.
//!
//! The pixels of an image are device memory, rows one after another without gaps, and OpenCL has a view of them for
//! kernels. So a copy between images and memory is a copy of boxes of bytes, which needs no OpenCL, and is ordered,
//! pinned and checked as any other copy. After `zeImageDestroy`, recorded commands and views that refer to the image are
//! errors, as they are after `zeMemFree`.
//!
//! `format` has the table of formats, `shape` the dimensions, `image` the object and its entry points,
//! `copy` the copies, `sampler` the samplers.

mod copy;
mod create;
mod format;
mod image;
mod sampler;
mod shape;

pub use copy::{
    append_copy, append_copy_from_memory, append_copy_region, append_copy_to_memory,
    append_pitched_copy_from_memory, append_pitched_copy_to_memory,
};
pub use create::{create, create_view, destroy, properties};
pub use image::{Image, allocation_properties, check_residency, memory_properties};
pub use sampler::create as create_sampler;
