//! The constructors of memory objects: new allocations, memory shared with other objects, and copies of it.
//!
//! An argument is first parsed, then resolved to a context, a device and a SYCL queue, and then memory is allocated or
//! imported.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::allocate::Request;
use crate::array::adopt::{pinned_of, view_of};
use crate::memory::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, Pinned, PyMemory, object};
use crate::parse::{self, BoolOrInt};
use crate::pool::{AllocationSource, PyMemoryPool};
use crate::resolve::{self, BindingRef, default_binding};
use crate::transfer::{self, Side};
use zeusm::usm::UsmKind;

/// The keywords of the constructors.
#[derive(Default)]
pub(crate) struct Options<'a, 'py> {
    pub(crate) alignment: Option<&'a Bound<'py, PyAny>>,
    pub(crate) queue: Option<&'a Bound<'py, PyAny>>,
    pub(crate) copy: bool,
    pub(crate) pool: Option<&'a Bound<'py, PyAny>>,
}

/// The constructor of a class.
macro_rules! constructor {
    ($class:ident, $kind:expr) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(
                signature = (other, *, alignment=None, queue=None, copy=BoolOrInt(false), pool=None),
                text_signature = "(other, *, alignment=None, queue=None, copy=False, pool=None)"
            )]
            fn new(
                other: &Bound<'_, PyAny>,
                alignment: Option<&Bound<'_, PyAny>>,
                queue: Option<&Bound<'_, PyAny>>,
                copy: BoolOrInt,
                pool: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<PyClassInitializer<Self>> {
                let options = Options {
                    alignment,
                    queue,
                    copy: copy.0,
                    pool,
                };
                let memory = construct_then($kind, other, &options, Ok)?;
                Ok(PyClassInitializer::from(memory).add_subclass(Self))
            }
        }
    };
}

constructor!(MemoryUSMShared, UsmKind::Shared);
constructor!(MemoryUSMHost, UsmKind::Host);
constructor!(MemoryUSMDevice, UsmKind::Device);

/// Passes memory of `kind`, given a size or an object with USM, to `then`.
#[inline(always)]
pub(crate) fn construct_then<T>(
    kind: UsmKind,
    other: &Bound<'_, PyAny>,
    options: &Options<'_, '_>,
    then: impl FnOnce(PyMemory) -> PyResult<T>,
) -> PyResult<T> {
    let py = other.py();
    let alignment = options.alignment.map_or(Ok(0), parse::alignment)?;
    let (source, pool_binding) = AllocationSource::read(options.pool, kind)?;
    let binding = match options.queue {
        Some(queue) => Some(resolve::binding(queue, "queue")?.into()),
        None => pool_binding.map(BindingRef::new),
    };
    let request = |size, binding| Request {
        source,
        kind,
        size,
        alignment,
        binding,
    };
    if parse::is_integral(other)? {
        let size = parse::size(other)?;
        let binding = match binding {
            Some(binding) => binding,
            None => BindingRef::new(default_binding(py)?),
        };
        return request(size, binding).allocate_then(py, then);
    }
    if options.copy {
        let from = pinned_of(other)?;
        let binding = binding.unwrap_or_else(|| BindingRef::new(&from.binding));
        return then(copy(py, &from, request(from.nbytes, binding))?);
    }
    let memory = view_of(other)?;
    if options.pool.is_some() {
        return Err(PyValueError::new_err(
            "pool is of no use without an allocation: give a number of bytes, or copy=True",
        ));
    }
    check_shareable(&memory, kind, alignment)?;
    let Some(binding) = binding else {
        return then(memory);
    };
    let own = memory.context_device();
    if !own.shares_context(binding.context_device()) {
        return Err(PyValueError::new_err(
            "the queue's context is not the one of the argument's memory; pass copy=True for a copy there",
        ));
    }
    then(memory.on_queue(py, Arc::clone(&binding))?)
}

/// Checks that memory of another object can be used without a copy.
fn check_shareable(memory: &PyMemory, kind: UsmKind, alignment: usize) -> PyResult<()> {
    if memory.kind != kind {
        return Err(PyValueError::new_err(format!(
            "the argument's memory is USM-{}: without a copy only MemoryUSM{} can take it; pass copy=True for a copy \
             in USM-{kind} memory",
            memory.kind,
            parse::class_suffix(memory.kind),
        )));
    }
    if alignment > 1 && !memory.address.is_multiple_of(alignment) {
        return Err(PyValueError::new_err(format!(
            "the argument's memory at {:#x} is not aligned to {alignment} bytes; pass copy=True for a copy that is",
            memory.address
        )));
    }
    Ok(())
}

/// A new allocation with the bytes of `source`.
fn copy(py: Python<'_>, source: &Pinned, request: Request<'_>) -> PyResult<PyMemory> {
    let copy = request.allocate(py)?;
    let here = Arc::clone(copy.context_device());
    let to = Side {
        owner: &here,
        address: copy.for_queue(py)?,
        by_host: copy.allows_host_copy(),
    };
    let (from, operands) = (source.side(py)?, (copy, source.share(py)?));
    // SAFETY: the operands own both sides, which are of the same size.
    unsafe { transfer::copy(py, to, from, source.nbytes, operands) }.map(|(copy, _)| copy)
}

/// Imports USM of any kind without a copy, and keeps its owner alive.
///
/// Parameters
/// ----------
/// obj
///     An object with `__sycl_usm_array_interface__`.
///
/// Returns
/// -------
/// MemoryUSMShared or MemoryUSMDevice or MemoryUSMHost
///     An object of the kind's class, from the lowest byte of an element to the highest.
///
/// Raises
/// ------
/// ValueError
///     When `obj` has no such interface, or it is inconsistent in itself or with the context or the allocation; the message
///     has the field and the value.
/// TypeError
///     When a field has a value of the wrong type.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> shared = zm.MemoryUSMShared(64)
/// >>> zm.as_usm_memory(shared)._pointer == shared._pointer
/// True
#[pyfunction]
pub(crate) fn as_usm_memory<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyMemory>> {
    object(obj.py(), view_of(obj)?)
}

#[pymethods]
impl PyMemoryPool {
    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// nbytes : int
    ///     The number of bytes.
    /// alignment : int
    ///     In bytes; 0, or a power of two of at most 2 MiB.
    ///
    /// Returns
    /// -------
    /// MemoryUSMShared or MemoryUSMDevice or MemoryUSMHost
    ///     An object of the class of the pool's kind.
    ///
    /// Raises
    /// ------
    /// USMAllocationError
    ///     When Level Zero or the limit refuses the allocation even after all unused memory was freed and the failure
    ///     callback was called; the message has the pool's statistics.
    /// ValueError
    ///     For a negative size or an invalid alignment.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("shared")
    /// >>> memory = pool.malloc(1000)
    /// >>> memory.nbytes, memory.get_usm_type()
    /// (1000, 'shared')
    #[pyo3(signature = (nbytes, *, alignment=None))]
    fn malloc<'py>(
        &self,
        nbytes: &Bound<'py, PyAny>,
        alignment: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyMemory>> {
        let py = nbytes.py();
        let alignment = alignment.map_or(Ok(0), parse::alignment)?;
        let request = Request {
            source: AllocationSource::Pool(&self.pool),
            kind: self.kind(),
            size: parse::size(nbytes)?,
            alignment,
            binding: BindingRef::new(&self.binding),
        };
        request.allocate_then(py, |memory| object(py, memory))
    }
}
