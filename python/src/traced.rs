//! Allocations that `tracemalloc` sees.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use once_cell::race::OnceBox;
use pyo3::prelude::*;

use crate::interpreter::function;
use crate::ordered;
use zeusm::usm::{Allocation, UsmKind};

/// The domain of zeusm's memory in `tracemalloc`: the letters "ze".
pub(crate) const TRACEMALLOC_DOMAIN: u32 = 0x7a65;

/// An allocation. While `tracemalloc` traces, it has those of memory that lies on the host.
pub(crate) struct Traced(ManuallyDrop<Allocation>);

/// Whether `tracemalloc` has ever traced. A thread that frees memory got it from the thread that allocated it, so it sees
/// that thread's store.
static HAS_TRACED: AtomicBool = AtomicBool::new(false);

/// CPython's functions, which are not in the stable ABI. They return at once while `tracemalloc` does not trace.
#[derive(Clone, Copy)]
struct Functions {
    track: unsafe extern "C" fn(u32, usize, usize) -> i32,
    untrack: unsafe extern "C" fn(u32, usize) -> i32,
}

/// Set by the import of the module; empty for an interpreter without the functions.
static FUNCTIONS: OnceBox<Functions> = OnceBox::new();

/// Finds the functions of the interpreter.
pub(crate) fn find_functions(_py: Python<'_>) {
    // SAFETY: the types are those of the interpreter's headers.
    let found = unsafe {
        (
            function(&[c"PyTraceMalloc_Track"]),
            function(&[c"PyTraceMalloc_Untrack"]),
        )
    };
    if let (Some(track), Some(untrack)) = found {
        FUNCTIONS.get_or_init(|| Box::new(Functions { track, untrack }));
    }
}

impl Traced {
    /// With the Python stack of this thread.
    #[inline(always)]
    pub(crate) fn new(_py: Python<'_>, allocation: Allocation) -> Self {
        if let (Some(functions), Some(address)) = (FUNCTIONS.get(), host_address(&allocation)) {
            // SAFETY: the thread is attached; the address is a number to the interpreter.
            let result =
                unsafe { (functions.track)(TRACEMALLOC_DOMAIN, address, allocation.size()) };
            // Other results mean that the memory is not traced.
            if result == 0 {
                HAS_TRACED.store(true, Ordering::Relaxed);
            }
        }
        Self(ManuallyDrop::new(allocation))
    }

    /// No effect on memory that is not traced.
    #[cold]
    fn untrack(&self) {
        if let (Some(functions), Some(address)) = (FUNCTIONS.get(), host_address(&self.0)) {
            // SAFETY: any thread may call it: it has a lock of its own, and runs no Python code.
            unsafe { (functions.untrack)(TRACEMALLOC_DOMAIN, address) };
        }
    }
}

/// The address, if the memory lies on the host.
#[inline(always)]
fn host_address(allocation: &Allocation) -> Option<usize> {
    // The program has traced its own memory.
    let lies_on_host = match allocation.kind() {
        UsmKind::Host if allocation.is_in_place() => false,
        UsmKind::Host => true,
        UsmKind::Shared => !allocation.device().migrates_shared_memory(),
        UsmKind::Device => false,
    };
    let address = allocation.as_ptr().addr();
    (lies_on_host && address != 0).then_some(address)
}

impl Drop for Traced {
    #[inline]
    fn drop(&mut self) {
        if HAS_TRACED.load(Ordering::Relaxed) {
            // Before the memory is freed, as its address can be allocated again then.
            self.untrack();
        }
        // SAFETY: it is not used any more.
        ordered::free(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

impl Deref for Traced {
    type Target = Allocation;

    fn deref(&self) -> &Allocation {
        &self.0
    }
}
