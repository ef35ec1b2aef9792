//! The two functions that PyTorch's `XPUPluggableAllocator` finds in the module's library, over the pools of `zeusm.torch.use`.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use libloading::os::unix::Library;
use once_cell::race::OnceBox;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::ordered::free_after;
use crate::pool::{PyMemoryPool, held};
use zeusm::sycl::QueueRef;

/// The pools, by PyTorch's numbers of their devices.
static POOLS: OnceBox<Vec<Py<PyMemoryPool>>> = OnceBox::new();

/// Sets the pools, once, as PyTorch accepts its allocator once.
#[pyfunction(name = "_torch_pools")]
pub(crate) fn torch_pools(py: Python<'_>, pools: Vec<Py<PyMemoryPool>>) -> PyResult<()> {
    for pool in &pools {
        // PyTorch's kernels use memory of SYCL's context only.
        pool.bind(py).get().binding.context_device().sycl()?;
    }
    POOLS.set(Box::new(pools)).map_err(|_| {
        PyRuntimeError::new_err("PyTorch has pools of zeusm already, and accepts an allocator once")
    })
}

fn pool_of(device: c_int) -> Result<&'static PyMemoryPool, String> {
    let pools = POOLS.get().map_or(&[][..], |pools| pools.as_slice());
    let pool = usize::try_from(device)
        .ok()
        .and_then(|device| pools.get(device));
    pool.map(Py::get).ok_or_else(|| {
        format!(
            "zeusm.torch.use has no pool for xpu:{device}, only {} pools",
            pools.len()
        )
    })
}

/// Allocates for PyTorch. Work of the queue needs no order here: the memory of a free waits for its own.
///
/// # Safety
/// For any thread, from a frame that C++'s exceptions may unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn zeusm_torch_allocate(
    size: usize,
    device: c_int,
    _queue: *mut c_void,
) -> *mut c_void {
    let allocated = pool_of(device)
        .and_then(|pool| held::allocate(&pool.pool, size, 0).map_err(|error| format!("{error}")));
    allocated.unwrap_or_else(|message| throw(&message))
}

/// Frees memory of PyTorch when the work is complete that was submitted to the queue. Other pointers are ignored: in a fork's child,
/// those of its parent.
///
/// # Safety
/// `queue` must be null, or the address of a `sycl::queue` that is never deleted.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn zeusm_torch_free(
    pointer: *mut c_void,
    _size: usize,
    device: c_int,
    queue: *mut c_void,
) {
    let Some(memory) = held::take(pointer) else {
        return;
    };
    // SAFETY: the caller guarantees the queue.
    let queue = unsafe { QueueRef::copy_from_raw(queue) }.ok();
    let frees = pool_of(device)
        .ok()
        .and_then(|pool| pool.binding.context_device().frees().ok());
    match (queue, frees) {
        (Some(queue), Some(frees)) => free_after(frees, [queue], memory),
        _ => held::end(memory),
    }
}

/// Throws a `std::runtime_error`, which PyTorch raises as a `RuntimeError`: it takes any pointer for memory, also null. Returns
/// null where the process has no C++ library.
fn throw(message: &str) -> *mut c_void {
    type Throw = unsafe extern "C-unwind" fn(*const c_char) -> *mut c_void;
    static THROW: OnceBox<Option<Throw>> = OnceBox::new();
    let throw = THROW.get_or_init(|| {
        // SAFETY: the C++ library has no initialisation that depends on an order, and its function this type, without a result.
        let found = unsafe {
            Library::new("libstdc++.so.6").and_then(|library| {
                let throw = library
                    .get::<Throw>(c"_ZSt21__throw_runtime_errorPKc")
                    .map(|it| *it);
                std::mem::forget(library);
                throw
            })
        };
        Box::new(found.ok())
    });
    let message = CString::new(message).unwrap_or_default();
    // SAFETY: the message ends with a zero. The exception unwinds through this frame and its callers, which allow it.
    throw.map_or(ptr::null_mut(), |throw| unsafe { throw(message.as_ptr()) })
}
