//! Copies, fills and hints that are under way when the call returns.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::transfers::Byte;
use super::{Held, PyMemory};
use crate::buffer::HostBuffer;
use crate::construct::Source;
use crate::depends::Dependencies;
use crate::errors::OrRaise;
use crate::event::{Fault, PyEvent};
use crate::retain::retain;
use crate::transfer::pointer;
use crate::{transfer, under_way};
use zeusm::usm::UsmKind;
use zeusm::{Completion, Error, Event, Queue, sys};

/// What Level Zero can be told of memory, by the names of its specification (`ze_memory_advice_t`).
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

#[pymethods]
impl PyMemory {
    /// Begins to copy the memory to the host.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     A writable C-contiguous buffer of any item type with room for all bytes. It cannot be resized before the
    ///     copy is done, and is not to be read before.
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the copy comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     The end of the copy. The memory and `obj` stay alive until then, whether or not it is kept.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` has no buffer, or `depends` is no event.
    /// ValueError
    ///     When `obj` is read-only, not contiguous or too small.
    /// LevelZeroError
    ///     When the copy is refused.
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
        let operands = Operands::new(slf, None, Some(buffer))?;
        // SAFETY: the operands are kept until the copy is done, and large enough.
        operands.submit(slf.py(), depends, move |queue, from, _, _| unsafe {
            queue.copy_raw(pointer(to), pointer(from), size, Completion::Event)
        })
    }

    /// Begins to copy from the host to the beginning of the memory.
    ///
    /// Parameters
    /// ----------
    /// obj
    ///     A C-contiguous buffer of any item type, of at most `nbytes` bytes. It cannot be resized before the copy is
    ///     done, and is not to be written before.
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the copy comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     The end of the copy. The memory and `obj` stay alive until then, whether or not it is kept.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `obj` has no buffer, or `depends` is no event.
    /// ValueError
    ///     When `obj` is not contiguous or too large, or the memory is read-only.
    /// LevelZeroError
    ///     When the copy is refused.
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
        memory.check_writable()?;
        memory.check_fits("source", buffer.size())?;
        let (from, size) = (buffer.address(), buffer.size());
        let operands = Operands::new(slf, None, Some(buffer))?;
        // SAFETY: the operands are kept until the copy is done, and large enough.
        operands.submit(slf.py(), depends, move |queue, to, _, _| unsafe {
            queue.copy_raw(pointer(to), pointer(from), size, Completion::Event)
        })
    }

    /// Begins to copy USM to the beginning of the memory, from any context.
    ///
    /// It goes directly where Level Zero allows it. Else, between devices that cannot reach each other, the bytes go
    /// through a piece of pinned host memory, and a thread of the host sees to that.
    ///
    /// Parameters
    /// ----------
    /// sycl_usm_ary
    ///     An object with `__sycl_usm_array_interface__` whose bytes, from its first element to its last, are at most
    ///     `nbytes`.
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the copy comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     The end of the copy. Both objects stay alive until then, whether or not it is kept.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `depends` is no event.
    /// ValueError
    ///     When `sycl_usm_ary` has no such interface or a malformed one, or is too large, or the memory is read-only.
    /// LevelZeroError
    ///     When the copy is refused.
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
        let source = Source::of(sycl_usm_ary)?;
        memory.check_writable()?;
        memory.check_fits("source", source.nbytes)?;
        let (there, size) = (Arc::clone(source.place()), source.nbytes);
        let operands = Operands::new(slf, Some(source), None)?;
        // SAFETY: the operands are kept until the copy is done, and large enough.
        operands.submit(slf.py(), depends, move |queue, to, from, fault| unsafe {
            transfer::begin_between(queue, to, there.queue()?, from, size, fault)
        })
    }

    /// Begins to set every byte.
    ///
    /// Parameters
    /// ----------
    /// val : int
    ///     The byte, 0 to 255.
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the fill comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     The end of the fill. The memory stays alive until then, whether or not it is kept.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     When `depends` is no event.
    /// ValueError
    ///     When `val` is not a byte, or the memory is read-only.
    /// LevelZeroError
    ///     When the fill is refused.
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
        // SAFETY: the memory is kept until the fill is done.
        Operands::new(slf, None, None)?.submit(slf.py(), depends, move |queue, to, _, _| unsafe {
            queue.fill_raw(pointer(to), val.0, size, Completion::Event)
        })
    }

    /// Asks for shared memory to be brought to its device before it is used there. A hint: for other kinds, and where
    /// the device has no memory of its own, there is nothing to do.
    ///
    /// Parameters
    /// ----------
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the hint comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     Complete once the hint was given.
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
        // SAFETY: the memory is kept until the hint was given.
        Operands::new(slf, None, None)?.submit(
            slf.py(),
            depends,
            move |queue, first, _, _| unsafe { queue.prefetch_raw(pointer(first), size).map(Some) },
        )
    }

    /// Tells the device how the memory will be used. A hint, too.
    ///
    /// Parameters
    /// ----------
    /// advice : str
    ///     "set_read_mostly", "set_preferred_location", "set_non_atomic_mostly", the same with "clear" for "set",
    ///     "bias_cached" or "bias_uncached", as in Level Zero's `ze_memory_advice_t`.
    /// depends : optional
    ///     A `zeusm.Event`, a `dpctl.SyclEvent` or a sequence of them: the hint comes after all of them.
    ///
    /// Returns
    /// -------
    /// zeusm.Event
    ///     Complete once the hint was given.
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
        // SAFETY: the memory is kept until the hint was given.
        Operands::new(slf, None, None)?.submit(
            slf.py(),
            depends,
            move |queue, first, _, _| unsafe {
                queue.advise_raw(pointer(first), size, advice).map(Some)
            },
        )
    }
}

/// What an operation works on: alive, open and not resized until it is done.
struct Operands {
    memory: Held,
    source: Option<Source>,
    buffer: Option<HostBuffer>,
}

impl Operands {
    /// # Errors
    /// `ValueError` when the memory is closed.
    fn new(
        memory: &Bound<'_, PyMemory>,
        source: Option<Source>,
        buffer: Option<HostBuffer>,
    ) -> PyResult<Self> {
        Ok(Self {
            memory: Held::new(memory)?,
            source,
            buffer,
        })
    }

    /// Submits an operation on them, given the addresses of the memory and of the source, and keeps them until it is done.
    fn submit(
        self,
        py: Python<'_>,
        depends: Option<&Bound<'_, PyAny>>,
        operation: impl FnOnce(&Queue, usize, usize, &Fault) -> Result<Option<Event>, Error> + Send,
    ) -> PyResult<PyEvent> {
        let memory = self.memory.memory();
        let mut dependencies = Dependencies::read(depends)?;
        let address = memory.for_later(py, &mut dependencies)?;
        let source = match &self.source {
            Some(source) => source.for_later(py, &mut dependencies)?,
            None => 0,
        };
        let touched = self.touched();
        under_way::prepare(py)?;
        let place = Arc::clone(memory.place());
        transfer::order(py, &place, &touched)?;
        let submitted = Instant::now();
        let (event, done_with) = py
            .detach(move || -> Result<_, Error> {
                let queue = place.queue()?.clone();
                let fault = Fault::default();
                dependencies.go_before(&queue)?;
                let event = match operation(&queue, address, source, &fault)? {
                    Some(event) => event,
                    None => queue.barrier(&[])?,
                };
                let done_with = retain(&place, &event, touched, self)?;
                let event = PyEvent::new(event, queue, place, fault, submitted);
                Ok((event, done_with))
            })
            .or_raise()?;
        drop(done_with);
        Ok(event)
    }

    /// All bytes that it may read or write.
    fn touched(&self) -> Vec<Range<usize>> {
        let source = self.source.as_ref().map(|source| source.extent());
        let buffer = self.buffer.as_ref();
        let buffer = buffer.map(|buffer| transfer::range(buffer.address(), buffer.size()));
        [Some(self.memory.memory().extent()), source, buffer]
            .into_iter()
            .flatten()
            .collect()
    }
}
