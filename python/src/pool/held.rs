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

/// The allocations by their addresses. A fork's child has none: those of its parent stay its parent's.
static HELD: Local<Mutex<FxHashMap<usize, Allocation>>> = Local::new();

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
        let mut held = HELD.get_or_default().lock();
        held.insert(pointer.addr(), allocation);
    }
    Ok(pointer)
}

/// Takes the allocation at an address, for its end.
pub(crate) fn take(pointer: *mut c_void) -> Option<Allocation> {
    HELD.get()?.lock().remove(&pointer.addr())
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
