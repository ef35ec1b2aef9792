//! The limit of a device's memory over all pools.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::interpreter::detach;
use crate::parse::number;
use crate::resolve::binding_or_default;

/// Limits the memory of a device that this process may hold through zeusm: in all pools and outside of them.
///
/// Host memory counts only where the device has no memory of its own. Memory that is held already stays, also beyond the limit. An
/// allocation beyond it is attempted again after all pools have returned their free memory, as one that the driver refuses.
///
/// Parameters
/// ----------
/// device : optional
///     The device, as the `queue` of `MemoryUSMShared`; None is the default device.
/// limit : int or float, optional
///     Bytes; a float is a fraction of the device's memory. None removes the limit.
///
/// Raises
/// ------
/// ValueError
///     For a negative limit, and a fraction above 1.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> zm.set_memory_limit(None, 1 << 30)
/// >>> zm.mem_get_info()[0] <= 1 << 30
/// True
/// >>> try:
/// ...     zm.MemoryUSMDevice(2 << 30)
/// ... except zm.USMAllocationError as error:
/// ...     "set_memory_limit" in str(error)
/// True
/// >>> zm.set_memory_limit(None, None)
#[pyfunction]
#[pyo3(signature = (device=None, limit=None))]
pub(crate) fn set_memory_limit(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    limit: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let binding = binding_or_default(py, device, "device")?;
    let device = binding.context_device().device();
    let fraction = limit.and_then(|limit| limit.cast::<PyFloat>().ok());
    let limit = match fraction {
        Some(fraction) => {
            let fraction = fraction.extract::<f64>()?;
            if !(0.0..=1.0).contains(&fraction) {
                return Err(PyValueError::new_err(format!(
                    "limit must be a fraction from 0.0 to 1.0, or an integer number of bytes, not {fraction:?}"
                )));
            }
            let memory = detach(py, || device.memory_size());
            Some((fraction * memory as f64) as u64)
        }
        None => number("limit, unless it is a float,", limit)?.map(|bytes| bytes as u64),
    };
    device.set_memory_limit(limit);
    Ok(())
}
