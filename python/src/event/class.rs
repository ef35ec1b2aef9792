//! `Event`, the completion of an asynchronous operation.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;

use crate::dpctl::{self, Dpctl};
use crate::errors::{IntoException, OrRaise};
use crate::getters::getters;
use crate::in_flight;
use crate::interpreter::detach;
use crate::resolve::ContextDevice;
use zeusm::sycl::{self, EventRef};
use zeusm::{Error, Event, Queue, Timing, sys};

/// The completion of an asynchronous operation.
///
/// The methods of memory objects whose names end in ``_async`` return events, and so does :meth:`IPCEventHandle.open`; there is
/// no constructor. Dropping an event
/// neither cancels the operation nor waits for it. ``await event`` waits without blocking an asyncio loop.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> memory = zm.MemoryUSMDevice(4)
/// >>> written = memory.copy_from_host_async(b"abcd")
/// >>> back = bytearray(4)
/// >>> memory.copy_to_host_async(back, depends=written).wait()
/// True
/// >>> back
/// bytearray(b'abcd')
#[pyclass(name = "Event", module = "zeusm", frozen, weakref)]
pub(crate) struct PyEvent {
    pub(crate) event: Event,
    /// The queue of its context and device.
    pub(crate) queue: Queue,
    context_device: Arc<ContextDevice>,
    submitted: Instant,
    /// The `dpctl.SyclEvent`, once made.
    sycl: OnceBox<Py<PyAny>>,
}

impl PyEvent {
    pub(crate) fn new(
        event: Event,
        queue: Queue,
        context_device: Arc<ContextDevice>,
        submitted: Instant,
    ) -> Self {
        Self {
            event,
            queue,
            context_device,
            submitted,
            sycl: OnceBox::new(),
        }
    }

    /// Waits, and reclaims the operands of complete operations.
    fn wait_for(&self, py: Python<'_>, limit: Option<Duration>) -> PyResult<bool> {
        let done = in_flight::wait(py, &self.event, limit, true)?;
        if done {
            self.reclaim(py);
        }
        Ok(done)
    }

    /// Reclaims the operands of the queue's complete operations.
    fn reclaim(&self, py: Python<'_>) {
        if !self.queue.is_reclaimed() {
            detach(py, || self.queue.reclaim());
        }
    }

    fn timing(&self) -> PyResult<Timing> {
        if !self.event.is_complete().or_raise()? {
            return Err(PyRuntimeError::new_err(
                "the operation is still in flight: it has timestamps once it is complete",
            ));
        }
        self.event.timing().or_raise()
    }

    /// Appends a signal of the native event of a SYCL event to the queue; `false` while the queue waits for the host.
    fn chain(&self, event: &EventRef, native: sys::ze_event_handle_t) -> Result<bool, Error> {
        // Another process's event is in no order with the queue.
        let dependent = self.queue.depends_on(slice::from_ref(&self.event))?;
        // SAFETY: the event is SYCL's own in the context of this queue, nothing else uses it, and it is retained.
        let Some(signalled) = (unsafe { dependent.signal_raw(native) })? else {
            return Ok(false);
        };
        self.queue.retain(&signalled, event.clone());
        in_flight::reclaim_later(&self.queue);
        Ok(true)
    }

    /// A SYCL event that the queue signals; None when this SYCL runtime does not support that, and while the queue waits for
    /// the host.
    fn chained(&self, py: Python<'_>) -> PyResult<Option<EventRef>> {
        let context = self.context_device.sycl()?;
        let chained = detach(py, || {
            let Some((event, native)) = EventRef::create(context)? else {
                return Ok(Ok(None));
            };
            let chained = self.chain(&event, native);
            Ok(chained.map(|chained| chained.then_some(event)))
        });
        match chained {
            Ok(event) => event.or_raise(),
            Err(error @ sycl::Error::Unavailable { .. }) => {
                let text = format!("sycl_event waits on the host: {error}");
                let category = py.get_type::<PyRuntimeWarning>();
                py.import("warnings")?
                    .call_method1("warn", (text, category))?;
                Ok(None)
            }
            Err(error) => Err(error.into_exception()),
        }
    }

    /// A `dpctl.SyclEvent` that is complete when this one is.
    fn make_sycl_event(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.context_device.sycl()?;
        let class = Dpctl::get(py)?.event.bind(py);
        if !self.event.is_complete().or_raise()?
            && let Some(event) = self.chained(py)?
            && let Some(event) = self.context_device.barrier_after(py, event)?
        {
            return Ok(class.call1((dpctl::new_capsule(py, &event)?,))?.unbind());
        }
        self.wait_for(py, None)?;
        Ok(class.call0()?.unbind())
    }
}

#[pymethods]
impl PyEvent {
    /// Waits until the operation is complete. The wait releases the GIL, and Ctrl-C interrupts it.
    ///
    /// Parameters
    /// ----------
    /// timeout : float, optional
    ///     In seconds; by default there is no timeout.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True when the operation is complete, False after the timeout.
    ///
    /// Raises
    /// ------
    /// LevelZeroError
    ///     When the operation failed, or the device is lost.
    /// IPCError
    ///     When it waited for another process's operation, and that failed, or the process has ended.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> event = zm.MemoryUSMDevice(4096).memset_async(1)
    /// >>> event.wait(timeout=10)
    /// True
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = match timeout {
            None => None,
            Some(seconds) if seconds.is_nan() => {
                return Err(PyValueError::new_err("timeout must be a number of seconds"));
            }
            Some(seconds) => Duration::try_from_secs_f64(seconds.max(0.0)).ok(),
        };
        self.wait_for(py, limit)
    }

    /// A `dpctl.SyclEvent` that is complete when this event is, for ``dEvents`` and ``depends`` of other packages.
    ///
    /// SYCL 2024 cannot wrap an event that is not complete; with it, this property blocks until the operation is complete.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When the memory is in no SYCL context; the message has the reason.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMShared(64)
    /// >>> event = memory.memset_async(1)
    /// >>> memory.sycl_queue.submit_barrier([event.sycl_event]).wait()
    /// >>> event.is_complete
    /// True
    #[getter]
    fn sycl_event(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(known) = self.sycl.get() {
            return Ok(known.clone_ref(py));
        }
        let made = self.make_sycl_event(py)?;
        Ok(self.sycl.get_or_init(|| Box::new(made)).clone_ref(py))
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("zeusm._await")?;
        module.call_method1("iterator", (slf,))
    }

    fn __repr__(&self) -> String {
        let state = match self.event.is_complete() {
            Ok(true) => "complete",
            Ok(false) => "in flight",
            Err(error) if error.is_of_producer() => "failed in another process",
            Err(_) => "lost with its device",
        };
        format!("<zeusm event on {}, {state}>", self.context_device.device())
    }
}

getters! {
    PyEvent,
    ">>> import zeusm.memory as zm\n\
     >>> event = zm.MemoryUSMDevice(4096).memset_async(1)\n\
     >>> event.wait()\n\
     True";

    /// Whether the operation is complete.
    "event.is_complete" => "True"
    fn is_complete(&self, py: Python<'_>) -> PyResult<bool> {
        let done = self.event.is_complete().or_raise()?;
        if done {
            self.reclaim(py);
        }
        Ok(done)
    }

    /// The status in dpctl's terms: `dpctl.event_status_type.submitted` or `.complete`.
    "event.execution_status.name" => "'complete'"
    fn execution_status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = if self.event.is_complete().or_raise()? {
            "complete"
        } else {
            "submitted"
        };
        Dpctl::get(py)?.status.bind(py).getattr(name)
    }

    /// The time of the submission in nanoseconds of the device's clock, converted from the host's clock.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     While the operation is in flight.
    "event.profiling_info_submit <= event.profiling_info_start" => "True"
    fn profiling_info_submit(&self) -> PyResult<u64> {
        self.timing()?;
        self.event.device_time(self.submitted).or_raise()
    }

    /// The start of the operation in nanoseconds of the device's clock.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     While the operation is in flight.
    "event.profiling_info_start <= event.profiling_info_end" => "True"
    fn profiling_info_start(&self) -> PyResult<u64> {
        Ok(self.timing()?.start)
    }

    /// The end of the operation in nanoseconds of the device's clock.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     While the operation is in flight.
    "event.profiling_info_end - event.profiling_info_start == event.duration" => "True"
    fn profiling_info_end(&self) -> PyResult<u64> {
        Ok(self.timing()?.end)
    }

    /// The duration of the operation on the device in nanoseconds.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     While the operation is in flight.
    "event.duration >= 0" => "True"
    fn duration(&self) -> PyResult<u64> {
        let timing = self.timing()?;
        Ok(timing.end - timing.start)
    }
}
