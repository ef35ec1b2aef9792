//! `await event`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use super::PyEvent;
use crate::in_flight::SLICE;

/// The iterator of `await event` in the running loop of asyncio.
pub(super) fn iterator<'py>(event: &Bound<'py, PyEvent>) -> PyResult<Bound<'py, PyAny>> {
    let py = event.py();
    let asyncio = py.import("asyncio")?;
    let running = asyncio.call_method0("get_running_loop")?;
    if event.get().wait_for(py, Some(Duration::ZERO))? {
        // Other tasks of the loop get their turn, too.
        return asyncio
            .call_method1("sleep", (0, true))?
            .call_method0("__await__");
    }
    let waiting = Bound::new(py, Waiting::new(event.clone().unbind()))?;
    let future = running.call_method1("run_in_executor", (py.None(), &waiting))?;
    future.call_method1("add_done_callback", (waiting.getattr("end")?,))?;
    future.call_method0("__await__")
}

/// A wait in a thread of the loop's executor, for which the exit of `asyncio.run` waits.
#[pyclass(module = "zeusm", frozen)]
struct Waiting {
    event: Py<PyEvent>,
    /// Whether the future is done, as it is when the await is cancelled.
    is_done: AtomicBool,
}

impl Waiting {
    fn new(event: Py<PyEvent>) -> Self {
        Self {
            event,
            is_done: AtomicBool::new(false),
        }
    }
}

#[pymethods]
impl Waiting {
    fn __call__(&self, py: Python<'_>) -> PyResult<bool> {
        while !self.is_done.load(Ordering::Relaxed) {
            if self.event.get().wait_for(py, Some(SLICE))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends the wait; a callback of the future.
    fn end(&self, _future: &Bound<'_, PyAny>) {
        self.is_done.store(true, Ordering::Relaxed);
    }
}
