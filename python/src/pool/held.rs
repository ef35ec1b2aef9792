//! Memory of pools that C code holds by its address, from `allocate` to `free`. Neither needs the GIL.

use std::ffi::c_void;

use rustc_hash::FxHashMap;

use crate::interpreter::try_attach;
use crate::stacks;
use zeusm::Error;
use zeusm::exit;
use zeusm::history::{self, StackScope};
use zeusm::pool::Pool;
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm_process::{Local, Mutex};

/// Allocations by their addresses.
type Part = Mutex<FxHashMap<usize, Allocation>>;

/// All of them, in parts that threads rarely lock at once. A fork's child has none: those of its parent stay its parent's.
static HELD: Local<[Part; 16]> = Local::new();

/// The part for an address, by the upper bits of a product, which depend on all bits of the address.
fn part(address: usize) -> &'static Part {
    &HELD.get_or_default()[address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - 4)]
}

/// Allocates from the pool; null without bytes.
///
/// # Errors
/// [`Error::Allocation`] with the pool's figures.
pub(crate) fn allocate(
    pool: &Pool<LevelZeroProvider>,
    size: usize,
    alignment: usize,
) -> Result<*mut c_void, Error> {
    let _stack = stack();
    let allocation = match Allocation::in_pool_cached(pool, size, alignment) {
        Some(cached) => cached,
        None => exit::inside(|| Allocation::in_pool(pool, size, alignment))?,
    };
    let pointer = allocation.as_ptr();
    if !pointer.is_null() {
        let address = pointer.addr();
        part(address).lock().insert(address, allocation);
    }
    Ok(pointer)
}

/// Takes the allocation at an address, for its end.
pub(crate) fn take(pointer: *mut c_void) -> Option<Allocation> {
    part(pointer.addr()).lock().remove(&pointer.addr())
}

/// Frees an allocation.
pub(crate) fn end(allocation: Allocation) {
    let _stack = stack();
    exit::inside(|| drop(allocation));
}

/// The Python stack of this thread, for a history.
fn stack() -> Option<StackScope> {
    if history::is_recording() {
        try_attach(stacks::scope).flatten()
    } else {
        None
    }
}
