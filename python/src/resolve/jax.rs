//! The SYCL queue of an array of JAX, whose memory is in a context of XLA's own.
//!
//! JAX has streams as integers, as CUDA's array interface has them; of a device of Intel's plugin it is the address of a
//! `sycl::queue`.
//!
//! Source: JAX, `Device.get_stream_for_external_ready_events`, `Array.block_until_ready`.

use std::collections::BTreeSet;

use once_cell::race::OnceBox;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::ResolvedSyclObject;
use crate::errors::OrRaise;
use crate::interpreter::intern;
use zeusm::sycl::{QueueRef, RawRef};

/// JAX's queue of an array's device, after the work on the array is complete; `None` for arrays of other packages.
///
/// # Errors
/// `BufferError` when the process has several SYCL runtimes, of which JAX's and dpctl's may be different ones.
pub(crate) fn of_jax(x: &Bound<'_, PyAny>) -> PyResult<Option<ResolvedSyclObject>> {
    let py = x.py();
    let Some(device) = x.getattr_opt(intern!(py, "device"))? else {
        return Ok(None);
    };
    // The integer is followed, so that it must be JAX's own.
    let module = device.get_type().module()?;
    if !module.to_cow()?.starts_with("jaxlib.") {
        return Ok(None);
    }
    // Both are in the process by now, so that they stay one and the same.
    static IS_ONE: OnceBox<()> = OnceBox::new();
    IS_ONE.get_or_try_init(|| one_runtime().map(Box::new))?;
    x.call_method0(intern!(py, "block_until_ready"))?;
    let address: usize = device
        .call_method0(intern!(py, "get_stream_for_external_ready_events"))?
        .extract()?;
    // SAFETY: JAX's device holds the queue, of the only SYCL runtime, as long as the process lives.
    let queue = unsafe { QueueRef::copy_from_raw(address as RawRef) }.or_raise()?;
    ResolvedSyclObject::of_queue_reference(py, &queue).map(Some)
}

/// Whether JAX and dpctl have the same SYCL runtime, as the process has no other.
fn one_runtime() -> PyResult<()> {
    let runtimes: BTreeSet<_> = zeusm_process::maps::mappings()
        .into_iter()
        .filter_map(|mapping| mapping.path)
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("libsycl.so"))
        })
        .collect();
    if runtimes.len() > 1 {
        return Err(PyBufferError::new_err(format!(
            "this process has several SYCL runtimes, and the array's may be another one than dpctl's: {runtimes:?}; \
             zeusm.asarray copies"
        )));
    }
    Ok(())
}
