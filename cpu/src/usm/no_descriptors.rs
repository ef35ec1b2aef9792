//! Memory of descriptors: Windows has none.

use crate::abi::result::ZeResult;
use crate::memory::{Allocation, Request};

/// No descriptor names a file that can be mapped.
pub fn import(_: i32, _: &Request) -> Option<usize> {
    None
}

/// # Errors
/// That of an export, always.
pub fn export(allocation: &Allocation) -> ZeResult<i32> {
    match allocation.export()? {}
}
