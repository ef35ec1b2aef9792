//! The history of allocations, for the class `History` of the package.

mod state;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

pub(crate) use self::state::PyHistoryState;
use crate::errors::OrRaise;
use crate::interpreter::detach;
use crate::parse::number;
use crate::resolve::binding_or_default;
use crate::stacks;
use zeusm::history::{self, Options};
use zeusm::{Device, Runtime};

/// The arguments of `_history_start`, which are checked before another recording is stopped.
#[pyfunction(name = "_history_options")]
pub(crate) fn history_options(
    stacks: bool,
    max_events: Option<&Bound<'_, PyAny>>,
) -> PyResult<(bool, Option<usize>)> {
    Ok((stacks, number("max_events", max_events)?))
}

/// Starts recording; an earlier recording is lost.
#[pyfunction(name = "_history_start")]
pub(crate) fn history_start(py: Python<'_>, record_stacks: bool, max_events: Option<usize>) {
    stacks::start(record_stacks);
    detach(py, || history::start(Options { max_events }));
}

/// Stops recording; None if recording was off.
#[pyfunction(name = "_history_stop")]
pub(crate) fn history_stop(py: Python<'_>) -> Option<PyHistoryState> {
    let state = detach(py, || PyHistoryState::new(history::stop));
    stacks::stop();
    state.recording.is_some().then_some(state)
}

/// What was recorded so far, and the live blocks.
#[pyfunction(name = "_history_state")]
pub(crate) fn history_state(py: Python<'_>) -> PyHistoryState {
    detach(py, || PyHistoryState::new(history::recording))
}

/// Whether a history is recorded.
#[pyfunction(name = "_history_is_recording")]
pub(crate) fn history_is_recording() -> bool {
    history::is_recording()
}

/// The free and the total bytes of a device's memory, as its driver reports them, whichever process uses the memory.
///
/// The figures are those of `xpu-smi` and, except on integrated GPUs, of `dpctl.utils.intel_device_info`: memory that zeusm's
/// pools hold counts as used, whether it is in a block or not. On the CPU runtime they are those of the machine, or of the
/// control group if that has less. Free is at most what the limit of `set_memory_limit` leaves.
///
/// Parameters
/// ----------
/// device : optional
///     The device, as the `queue` of `MemoryUSMShared`.
///
/// Returns
/// -------
/// free, total : int
///     Bytes that can be allocated, and bytes that programs can use at most.
///
/// Raises
/// ------
/// LevelZeroError
///     When the driver does not report them.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> free, total = zm.mem_get_info()
/// >>> 0 < free <= total
/// True
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn mem_get_info(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, u64)> {
    let binding = binding_or_default(py, device, "device")?;
    memory_of(py, binding.context_device().device())
}

/// The free and the total bytes of the runtime's device with this index, in the order of `Runtime.device_names`.
#[pyfunction(name = "_device_memory")]
pub(crate) fn device_memory(py: Python<'_>, index: usize) -> PyResult<(u64, u64)> {
    let devices = detach(py, Runtime::get).or_raise()?.devices();
    let device = devices
        .get(index)
        .ok_or_else(|| PyIndexError::new_err(format!("there are {} devices", devices.len())))?;
    memory_of(py, device)
}

/// The free and the total bytes of a device's memory.
fn memory_of(py: Python<'_>, device: &Device) -> PyResult<(u64, u64)> {
    let state = detach(py, || device.memory_state()).or_raise()?;
    let left = device.memory_limit().unwrap_or(u64::MAX);
    let left = left.saturating_sub(device.held_memory());
    let free = state.free.saturating_sub(device.reserved_memory());
    Ok((free.min(left), state.total))
}
