//! Making memory objects: new allocations, shares of other objects' memory, and copies of it.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt};

use super::array::UsmArray;
use super::errors::{Explain, USMAllocationError};
use super::kinds;
use super::memory::{Held, Owner, PyMemory};
use super::place::Place;
use super::pool::Supply;
use super::spot::Spot;
use super::syclobj::{Target, named};
use super::{interface, transfer};
use crate::suai::{self, Interface};
use crate::usm::UsmKind;

/// The keywords of the constructors.
pub(super) struct Options<'a, 'py> {
    pub(super) alignment: Option<&'a Bound<'py, PyAny>>,
    pub(super) queue: Option<&'a Bound<'py, PyAny>>,
    pub(super) copy: bool,
    pub(super) pool: Option<&'a Bound<'py, PyAny>>,
}

/// What a constructor of `kind` makes of its argument: a size, or an object with USM.
pub(super) fn construct(
    kind: UsmKind,
    other: &Bound<'_, PyAny>,
    options: &Options<'_, '_>,
) -> PyResult<PyMemory> {
    let py = other.py();
    let alignment = options.alignment.map_or(Ok(0), alignment)?;
    let (supply, pools) = Supply::read(options.pool, kind)?;
    let wanted = options
        .queue
        .map(|queue| Spot::read(queue, "queue"))
        .transpose()?
        .or(pools);
    if is_integral(other)? {
        let size = size(other)?;
        let spot = wanted.map_or_else(|| Spot::default_one(py), Ok)?;
        return allocate_from(py, &supply, kind, size, alignment, spot);
    }
    if options.copy {
        let source = Source::of(other)?;
        let spot = wanted.unwrap_or_else(|| Arc::clone(&source.spot));
        return copy_of(py, &supply, kind, source, alignment, spot);
    }
    let source = view_of(other)?;
    if options.pool.is_some() {
        return Err(PyValueError::new_err(
            "pool is of no use without an allocation: give a number of bytes, or copy=True",
        ));
    }
    if source.kind != kind {
        return Err(PyValueError::new_err(format!(
            "the argument's memory is USM-{}: without a copy only MemoryUSM{} can take it; pass copy=True for a copy \
             in USM-{kind} memory",
            source.kind,
            kinds::suffix(source.kind),
        )));
    }
    if alignment > 1 && !source.address.number().is_multiple_of(alignment) {
        return Err(PyValueError::new_err(format!(
            "the argument's memory at {:#x} is not aligned to {alignment} bytes; pass copy=True for a copy that is",
            source.address
        )));
    }
    match wanted {
        Some(spot) => on_queue(py, source, spot),
        None => Ok(source),
    }
}

/// Wraps USM of any kind without a copy, and keeps its owner alive.
///
/// Parameters
/// ----------
/// obj
///     An object with `__sycl_usm_array_interface__`.
///
/// Returns
/// -------
/// MemoryUSMShared or MemoryUSMDevice or MemoryUSMHost
///     According to the kind, from the lowest byte that an element touches to the highest.
///
/// Raises
/// ------
/// ValueError
///     When `obj` has no such interface, or it contradicts itself, the context or the allocation; the message names
///     the field and the value.
/// TypeError
///     When a field has a value of a wrong type.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> shared = zm.MemoryUSMShared(64)
/// >>> zm.as_usm_memory(shared)._pointer == shared._pointer
/// True
#[pyfunction]
pub(super) fn as_usm_memory<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    kinds::object(obj.py(), view_of(obj)?)
}

/// Memory to copy from, in use while a copy lasts.
pub(super) enum Source {
    /// An object's own: no other object has to be made for it.
    Own(Held),
    View(Box<PyMemory>),
}

impl Source {
    /// That of any object that has some.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match own_memory(object)? {
            Some(memory) => Held::new(memory).map(Self::Own),
            None => view_of(object).map(Box::new).map(Self::View),
        }
    }
}

impl Deref for Source {
    type Target = PyMemory;

    fn deref(&self) -> &PyMemory {
        match self {
            Self::Own(held) => held.memory(),
            Self::View(memory) => memory,
        }
    }
}

/// The object as one of ours, if what it is says which memory it has.
fn own_memory<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, PyMemory>>> {
    match object.cast::<PyMemory>() {
        Ok(memory) if !overrides_interface(object)? => Ok(Some(memory)),
        _ => Ok(None),
    }
}

/// The memory of any object that has some, without a copy.
pub(super) fn view_of(object: &Bound<'_, PyAny>) -> PyResult<PyMemory> {
    let py = object.py();
    if let Some(memory) = own_memory(object)? {
        return memory.get().share(py);
    }
    if let Ok(array) = object.cast::<UsmArray>() {
        return array.get().touched(py);
    }
    let Some(dictionary) = interface::dictionary(object)? else {
        return Err(PyValueError::new_err(format!(
            "{} has no __sycl_usm_array_interface__, and is no number of bytes",
            object.get_type().name()?
        )));
    };
    Ok(described(object, &dictionary)?.0)
}

/// The memory that a dictionary describes, from the lowest byte that an element touches to the highest, and the array
/// in it; `owner`, whose dictionary it is, keeps it alive.
pub(super) fn described(
    owner: &Bound<'_, PyAny>,
    dictionary: &Bound<'_, PyDict>,
) -> PyResult<(PyMemory, Interface)> {
    let py = owner.py();
    let exported = interface::read(owner, dictionary)?;
    let target = Target::read(&exported.syclobj, SYCLOBJ)?;
    let (pointer, nbytes) = (exported.interface.start(), exported.interface.len());
    // Of no bytes there is nothing to ask Level Zero about.
    let (place, kind) = if nbytes == 0 {
        let place = target.place();
        (place.map_err(|error| named(SYCLOBJ, py, error))?, None)
    } else {
        let (place, attributes) = Place::of_pointer(&target.context, exported.interface.pointer)
            .map_err(|error| named("'data' and 'syclobj'", py, error))?;
        let allocation = suai::Allocation {
            base: attributes.base,
            size: attributes.size,
        };
        exported
            .interface
            .check_within(allocation)
            .map_err(|error| outside(&exported.interface, &error))?;
        (place, Some(attributes.kind))
    };
    target.accept(py);
    let spot = target.spot_at(py, &place)?;
    let owner = Owner::Object(owner.clone().unbind());
    let kind = kind.unwrap_or(UsmKind::Device);
    let memory = spot.memory(pointer, nbytes, kind, exported.read_only, owner);
    Ok((memory, exported.interface))
}

/// The field of the interface that names the context.
const SYCLOBJ: &str = "__sycl_usm_array_interface__ is malformed: 'syclobj'";

/// All the fields that together reach outside the allocation.
fn outside(interface: &Interface, error: &suai::Error) -> PyErr {
    let layout = &interface.layout;
    interface::malformed(format_args!(
        "'shape' {:?} with 'strides' {:?}, 'offset' {} and 'typestr' of {} bytes an item: {error}",
        layout.shape(),
        layout.element_strides(),
        layout.offset(),
        layout.itemsize(),
    ))
}

pub(super) fn allocate(
    py: Python<'_>,
    kind: UsmKind,
    size: usize,
    alignment: usize,
    spot: Arc<Spot>,
) -> PyResult<PyMemory> {
    allocate_from(py, &Supply::Usual, kind, size, alignment, spot)
}

pub(super) fn allocate_from(
    py: Python<'_>,
    supply: &Supply,
    kind: UsmKind,
    size: usize,
    alignment: usize,
    spot: Arc<Spot>,
) -> PyResult<PyMemory> {
    supply.check_place(&spot)?;
    let allocation = supply.allocate(py, &spot, kind, size, alignment)?;
    let pointer = allocation.as_ptr().expose_provenance();
    let owner = Owner::Allocation(allocation);
    Ok(PyMemory {
        // A power of two, as the allocation has seen to.
        alignment_bits: alignment.checked_ilog2().map_or(0, |bits| bits as u8),
        ..spot.memory(pointer, size, kind, false, owner)
    })
}

/// A new allocation with the bytes of `source`.
fn copy_of(
    py: Python<'_>,
    supply: &Supply,
    kind: UsmKind,
    source: Source,
    alignment: usize,
    spot: Arc<Spot>,
) -> PyResult<PyMemory> {
    let copy = allocate_from(py, supply, kind, source.nbytes, alignment, spot)?;
    let (there, from) = (Arc::clone(source.place()), source.for_queue(py)?);
    let (here, to) = (Arc::clone(copy.place()), copy.for_queue(py)?);
    let by_host = copy.is_hosts() && source.is_hosts();
    let (size, operands) = (source.nbytes, (copy, source));
    // SAFETY: the operands are both sides, and as large as each other.
    let (copy, _) =
        unsafe { transfer::copy_between(py, &here, to, &there, from, size, by_host, operands) }?;
    Ok(copy)
}

/// The same memory with another queue, which must be of its context.
fn on_queue(py: Python<'_>, memory: PyMemory, spot: Arc<Spot>) -> PyResult<PyMemory> {
    if !memory.place().shares_context(spot.place()) {
        return Err(PyValueError::new_err(
            "the queue's context is not the one of the argument's memory; pass copy=True for a copy there",
        ));
    }
    let spot = if Arc::ptr_eq(memory.place(), spot.place()) {
        spot
    } else {
        // Where the memory is does not change.
        spot.queue_at(py, memory.place())
    };
    Ok(PyMemory { spot, ..memory })
}

/// Whether a subclass in Python gives an interface of its own, which then counts.
fn overrides_interface(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let class = object.get_type();
    if kinds::is_exact(&class) {
        return Ok(false);
    }
    let name = pyo3::intern!(py, "__sycl_usm_array_interface__");
    let own = py.get_type::<PyMemory>().getattr(name)?;
    Ok(!class.getattr(name)?.is(&own))
}

/// Python's and NumPy's integers; not arrays, which may be indices too.
pub(super) fn is_integral(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static INTEGRAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(true);
    }
    let py = object.py();
    let integral = INTEGRAL.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("numbers")?.getattr("Integral")?.unbind())
    })?;
    object.is_instance(integral.bind(py))
}

pub(super) fn size(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    match object.extract::<isize>() {
        Ok(size) => {
            if let Ok(size) = usize::try_from(size) {
                return Ok(size);
            }
        }
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {}
        Err(error) => return Err(error),
    }
    if object.lt(0)? {
        return Err(PyValueError::new_err(format!(
            "the number of bytes must not be negative, as {object} is"
        )));
    }
    Err(USMAllocationError::new_err(format!(
        "cannot allocate {object} bytes: no machine can address more than {}",
        isize::MAX
    )))
}

pub(super) fn alignment(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !is_integral(object)? {
        return Err(PyTypeError::new_err(format!(
            "alignment must be an integer, not {}",
            object.get_type().name()?
        )));
    }
    // Of no use as an alignment either, but told with the limit by the allocation.
    object.extract::<usize>().explain(object.py(), |_| {
        PyValueError::new_err(format!(
            "alignment must be 0 or a power of two of at most {} bytes, not {object}",
            crate::usm::LARGEST_ALIGNMENT
        ))
    })
}
