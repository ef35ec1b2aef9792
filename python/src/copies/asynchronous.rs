//! Asynchronous copies, fills and hints: the call returns while they are in flight.

use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::blocking::Byte;
use crate::array::adopt;
use crate::errors::OrRaise;
use crate::event::{PyEvent, WaitList};
use crate::in_flight::{self, Visible};
use crate::memory::{Pinned, PyMemory};
use crate::parse::HostBuffer;
use crate::transfer::{self, pointer};
use zeusm::usm::UsmKind;
use zeusm::{Completion, Error, Event, Queue, sys};

/// Level Zero's advice, by the names of its specification (`ze_memory_advice_t`).
const ADVICE: [(&str, sys::ze_memory_advice_t); 8] = [
    ("set_read_mostly", sys::ZE_MEMORY_ADVICE_SET_READ_MOSTLY),
    ("clear_read_mostly", sys::ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY),
    (
        "set_preferred_location",
        sys::ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION,
    ),
    (
        "clear_preferred_location",
        sys::ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION,
    ),
    (
        "set_non_atomic_mostly",
        sys::ZE_MEMORY_ADVICE_SET_NON_ATOMIC_MOSTLY,
    ),
    (
        "clear_non_atomic_mostly",
        sys::ZE_MEMORY_ADVICE_CLEAR_NON_ATOMIC_MOSTLY,
    ),
    ("bias_cached", sys::ZE_MEMORY_ADVICE_BIAS_CACHED),
    ("bias_uncached", sys::ZE_MEMORY_ADVICE_BIAS_UNCACHED),
];

/// The wait list and the event in a docstring.
macro_rules! asynchronous {
    ($starts:literal, $operation:literal) => {
        concat!(
            "depends : optional\n    The wait list: a `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them. The ",
            $starts,
            " after all of them are\n    complete.\n\nReturns\n-------\nzeusm.Event\n    The event that completes with the ",
            $operation,
            "."
        )
    };
}

#[pymethods]
impl PyMemory {
    /// Copies the memory to the host, asynchronously.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     A writable C-contiguous buffer of any item type with room for all bytes. It cannot be resized, and must not be
    ///     read, before the copy is complete.
    #[doc = asynchronous!("copy starts", "copy. The memory and `obj` are retained until then, also if the event is dropped")]
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` does not support the buffer protocol, or `depends` has an object that is not an event.
    /// ValueError
    ///     When `obj` is too small.
    /// BufferError, ValueError
    ///     The exporter's exception, when `obj` is read-only or not contiguous.
    /// LevelZeroError
    ///     When Level Zero refuses the copy.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory, back = zm.MemoryUSMDevice(2), bytearray(2)
    /// >>> memory.memset(1)
    /// >>> memory.copy_to_host_async(back).wait()
    /// True
    /// >>> back
    /// bytearray(b'\x01\x01')
    #[pyo3(signature = (obj, *, depends=None))]
    fn copy_to_host_async(
        slf: &Bound<'_, Self>,
        obj: &Bound<'_, PyAny>,
        depends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let memory = slf.get();
        let buffer = HostBuffer::writable(obj)?;
        memory.check_holds(&buffer)?;
        let (to, size) = (buffer.address(), memory.nbytes);
        // SAFETY: the operands are retained until the copy is complete, and large enough.
        submit(
            slf,
            None,
            Some(buffer),
            depends,
            move |queue, from, _| unsafe {
                queue.copy_raw(pointer(to), pointer(from), size, Completion::Event)
            },
        )
    }

    /// Copies from the host to the beginning of the memory, asynchronously.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     A C-contiguous buffer of any item type, of at most `nbytes` bytes. It cannot be resized, and must not be written,
    ///     before the copy is complete.
    #[doc = asynchronous!("copy starts", "copy. The memory and `obj` are retained until then, also if the event is dropped")]
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` does not support the buffer protocol, or `depends` has an object that is not an event.
    /// ValueError
    ///     When `obj` is too large, or the memory is read-only.
    /// BufferError, ValueError
    ///     The exporter's exception, when `obj` is not contiguous.
    /// LevelZeroError
    ///     When Level Zero refuses the copy.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(4)
    /// >>> event = memory.copy_from_host_async(b"abcd")
    /// >>> memory.tobytes()  # In its turn.
    /// b'abcd'
    #[pyo3(signature = (obj, *, depends=None))]
    fn copy_from_host_async(
        slf: &Bound<'_, Self>,
        obj: &Bound<'_, PyAny>,
        depends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let memory = slf.get();
        let buffer = HostBuffer::readable(obj)?;
        memory.check_takes(buffer.size())?;
        let (from, size) = (buffer.address(), buffer.size());
        // SAFETY: the operands are retained until the copy is complete, and large enough.
        submit(
            slf,
            None,
            Some(buffer),
            depends,
            move |queue, to, _| unsafe {
                queue.copy_raw(pointer(to), pointer(from), size, Completion::Event)
            },
        )
    }

    /// Copies USM to the beginning of the memory, from any context, asynchronously.
    ///
    /// The copy is direct if Level Zero supports that. Between devices without peer access, a host task copies the bytes
    /// through staging chunks in pinned host memory.
    ///
    /// Parameters
    /// ----------
    /// sycl_usm_ary
    ///     An object with `__sycl_usm_array_interface__` whose extent, from its first element to its last, is at most
    ///     `nbytes`.
    #[doc = asynchronous!("copy starts", "copy. Both objects are retained until then, also if the event is dropped")]
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `depends` has an object that is not an event.
    /// ValueError
    ///     When `sycl_usm_ary` has no such interface or a malformed one, or is too large, or the memory is read-only. Memory
    ///     of CUDA is refused: `copy_from_device` copies it.
    /// LevelZeroError
    ///     When Level Zero refuses the copy.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> source, memory = zm.MemoryUSMShared(2), zm.MemoryUSMDevice(2)
    /// >>> filled = source.memset_async(3)
    /// >>> memory.copy_from_device_async(source, depends=filled).wait()
    /// True
    /// >>> memory.tobytes()
    /// b'\x03\x03'
    #[pyo3(signature = (sycl_usm_ary, *, depends=None))]
    fn copy_from_device_async(
        slf: &Bound<'_, Self>,
        sycl_usm_ary: &Bound<'_, PyAny>,
        depends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let memory = slf.get();
        let source = adopt::pinned_of(sycl_usm_ary)?;
        memory.check_takes(source.nbytes)?;
        let (there, size) = (Arc::clone(source.context_device()), source.nbytes);
        // SAFETY: the operands are retained until the copy is complete, and large enough.
        submit(
            slf,
            Some(source),
            None,
            depends,
            move |queue, to, from| unsafe {
                transfer::submit_copy(queue, to, there.queue()?, from, size, Completion::Event)
            },
        )
    }

    /// Sets every byte, asynchronously.
    ///
    /// Parameters
    /// ----------
    /// val : int
    ///     The byte, 0 to 255.
    #[doc = asynchronous!("fill starts", "fill. The memory is retained until then, also if the event is dropped")]
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `depends` has an object that is not an event.
    /// ValueError
    ///     When `val` is not a byte, or the memory is read-only.
    /// LevelZeroError
    ///     When Level Zero refuses the fill.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(2)
    /// >>> memory.memset_async(9).wait(timeout=10)
    /// True
    /// >>> memory.tobytes()
    /// b'\t\t'
    #[pyo3(
        signature = (val=Byte(0), *, depends=None),
        text_signature = "($self, val=0, *, depends=None)"
    )]
    fn memset_async(
        slf: &Bound<'_, Self>,
        val: Byte,
        depends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let memory = slf.get();
        memory.check_writable()?;
        let size = memory.nbytes;
        // SAFETY: the memory is retained until the fill is complete.
        submit(slf, None, None, depends, move |queue, to, _| unsafe {
            queue.fill_raw(pointer(to), val.0, size, Completion::Event)
        })
    }

    /// Prefetches shared memory to its device. This is a hint: it has no effect for other kinds, and on devices without
    /// memory of their own.
    ///
    /// Parameters
    /// ----------
    #[doc = asynchronous!("hint is executed", "hint")]
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> zm.MemoryUSMShared(4096).prefetch().wait()
    /// True
    #[pyo3(signature = (*, depends=None))]
    fn prefetch(slf: &Bound<'_, Self>, depends: Option<&Bound<'_, PyAny>>) -> PyResult<PyEvent> {
        let memory = slf.get();
        let size = if memory.kind == UsmKind::Shared {
            memory.nbytes
        } else {
            0
        };
        // SAFETY: the memory is retained until the hint is complete.
        submit(slf, None, None, depends, move |queue, first, _| unsafe {
            queue.prefetch_raw(pointer(first), size).map(Some)
        })
    }

    /// Advises the driver how the memory will be used. This is a hint, as is `prefetch`.
    ///
    /// Parameters
    /// ----------
    /// advice : str
    ///     "set_read_mostly", "set_preferred_location", "set_non_atomic_mostly", the same with "clear" for "set",
    ///     "bias_cached" or "bias_uncached", as in Level Zero's `ze_memory_advice_t`.
    #[doc = asynchronous!("hint is executed", "hint")]
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For any other advice.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> zm.MemoryUSMShared(4096).mem_advise("set_read_mostly").wait()
    /// True
    #[pyo3(signature = (advice, *, depends=None))]
    fn mem_advise(
        slf: &Bound<'_, Self>,
        advice: &str,
        depends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let Some((_, advice)) = ADVICE.into_iter().find(|(name, _)| *name == advice) else {
            let names = ADVICE.map(|(name, _)| name).join(", ");
            return Err(PyValueError::new_err(format!(
                "advice must be one of {names}, not {advice}"
            )));
        };
        let memory = slf.get();
        let size = memory.nbytes;
        // SAFETY: the memory is retained until the hint is complete.
        submit(slf, None, None, depends, move |queue, first, _| unsafe {
            queue.advise_raw(pointer(first), size, advice).map(Some)
        })
    }
}

/// Submits an operation with the addresses of the memory and of the source. The operands are kept alive and pinned, and cannot be
/// resized, until it is complete.
///
/// # Errors
/// `ValueError` when the memory is closed.
fn submit(
    memory: &Bound<'_, PyMemory>,
    source: Option<Pinned>,
    buffer: Option<HostBuffer>,
    depends: Option<&Bound<'_, PyAny>>,
    operation: impl FnOnce(&Queue, usize, usize) -> Result<Option<Event>, Error> + Send,
) -> PyResult<PyEvent> {
    let (py, pinned) = (memory.py(), Pinned::new(memory)?);
    let memory = memory.get();
    let mut wait_list = WaitList::read(depends)?;
    let address = memory.for_async(py, &mut wait_list)?;
    let mut touched = vec![memory.extent()];
    let context_device = Arc::clone(memory.context_device());
    let (mut from, mut from_address) = (Arc::clone(&context_device), 0);
    if let Some(source) = &source {
        from_address = source.for_async(py, &mut wait_list)?;
        from = Arc::clone(source.context_device());
        touched.push(source.extent());
    }
    let buffer_range = |buffer: &HostBuffer| transfer::range(buffer.address(), buffer.size());
    touched.extend(buffer.as_ref().map(buffer_range));
    transfer::order(py, &context_device, &touched)?;
    let submitted = Instant::now();
    let mut visible = Visible::new(&context_device, &from, &touched);
    let (event, returned) = visible
        .detach(py, |last| -> Result<_, Error> {
            let queue = context_device.queue()?;
            let dependent = wait_list.of(queue)?;
            let event = match operation(&dependent, address, from_address)? {
                Some(event) => event,
                None => dependent.barrier(&[])?,
            };
            let (touched, operands) = (touched.clone(), (pinned, source, buffer));
            let returned = in_flight::retain(&context_device, &event, touched, operands)?;
            *last = Some(event.clone());
            let owner = Arc::clone(&context_device);
            let event = PyEvent::new(event, queue.clone(), owner, submitted);
            Ok((event, returned))
        })
        .or_raise()?;
    // This may run arbitrary code.
    drop(returned);
    Ok(event)
}
