//! Making memory objects: new allocations, shares of other objects' memory, and copies of it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt};

use super::array::UsmArray;
use super::dpctl::default_place;
use super::errors::USMAllocationError;
use super::kinds;
use super::memory::{Owner, PyMemory};
use super::place::Place;
use super::pool::Supply;
use super::syclobj::Target;
use super::uses::Uses;
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
    let source = view_of(other)?;
    if options.copy {
        let spot = wanted.map_or_else(|| Spot::of(py, &source), Ok)?;
        return copy_of(py, &supply, kind, &source, alignment, spot);
    }
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
    if alignment > 1 && !source.pointer.is_multiple_of(alignment) {
        return Err(PyValueError::new_err(format!(
            "the argument's memory at {:#x} is not aligned to {alignment} bytes; pass copy=True for a copy that is",
            source.pointer
        )));
    }
    match wanted {
        Some(spot) => on_queue(source, spot),
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

/// The memory of any object that has some, without a copy.
pub(super) fn view_of(object: &Bound<'_, PyAny>) -> PyResult<PyMemory> {
    let py = object.py();
    if let Ok(memory) = object.cast::<PyMemory>()
        && !overrides_interface(object)?
    {
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
        (place.map_err(|error| named(SYCLOBJ, py, &error))?, None)
    } else {
        let (place, attributes) = Place::of_pointer(&target.context, exported.interface.pointer)
            .map_err(|error| named("'data' and 'syclobj'", py, &error))?;
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
    let spot = Spot::new(py, place, target.queue)?;
    let owner = Owner::Object(owner.clone().unbind());
    let kind = kind.unwrap_or(UsmKind::Device);
    let memory = spot.memory(pointer, nbytes, kind, exported.read_only, owner);
    Ok((memory, exported.interface))
}

/// The field of the interface that names the context.
const SYCLOBJ: &str = "__sycl_usm_array_interface__ is malformed: 'syclobj'";

/// An error about the place that a field or an argument names.
fn named(role: &str, py: Python<'_>, error: &PyErr) -> PyErr {
    PyValueError::new_err(format!("{role}: {}", error.value(py)))
}

/// All the fields that together reach outside the allocation.
fn outside(interface: &Interface, error: &suai::Error) -> PyErr {
    let layout = &interface.layout;
    interface::malformed(format_args!(
        "'shape' {:?} with 'strides' {:?}, 'offset' {} and 'typestr' of {} bytes an item: {error}",
        layout.shape(),
        layout.strides(),
        layout.offset(),
        layout.itemsize(),
    ))
}

/// Where new memory goes.
pub(super) struct Spot {
    pub(super) place: Arc<Place>,
    queue: PyOnceLock<Py<PyAny>>,
    in_order: bool,
}

impl Spot {
    pub(super) fn new(
        py: Python<'_>,
        place: Arc<Place>,
        queue: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let cell = PyOnceLock::new();
        let mut in_order = false;
        if let Some(queue) = queue {
            in_order = queue.getattr(py, "is_in_order")?.extract(py)?;
            // A fresh cell is empty, so this succeeds.
            let _ = cell.set(py, queue);
        }
        Ok(Self {
            place,
            queue: cell,
            in_order,
        })
    }

    /// Where a SYCL object says. `role` is what the caller calls the object.
    pub(super) fn read(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Self> {
        let target = Target::read(object, role)?;
        let place = target
            .place()
            .map_err(|error| named(role, object.py(), &error))?;
        target.accept(object.py());
        Self::new(object.py(), place, target.queue)
    }

    pub(super) fn default_one(py: Python<'_>) -> PyResult<Self> {
        let default = default_place(py)?;
        let queue = default.queue.as_ref().map(|queue| queue.clone_ref(py));
        Self::new(py, Arc::clone(&default.place), queue)
    }

    /// The `dpctl.SyclQueue`, if there is one.
    pub(super) fn queue(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.queue.get(py).map(|queue| queue.clone_ref(py))
    }

    /// Where `memory` is.
    pub(super) fn of(py: Python<'_>, memory: &PyMemory) -> PyResult<Self> {
        let queue = memory.queue.get(py).map(|queue| queue.clone_ref(py));
        Self::new(py, Arc::clone(&memory.place), queue)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Memory there.
    pub(super) fn memory(
        self,
        pointer: usize,
        nbytes: usize,
        kind: UsmKind,
        read_only: bool,
        owner: Owner,
    ) -> PyMemory {
        PyMemory {
            pointer,
            nbytes,
            kind,
            read_only,
            alignment: 0,
            owner: Mutex::new(Some(owner)),
            uses: Uses::default(),
            exported: AtomicBool::new(false),
            place: self.place,
            queue: self.queue,
            in_order: self.in_order,
        }
    }
}

pub(super) fn allocate(
    py: Python<'_>,
    kind: UsmKind,
    size: usize,
    alignment: usize,
    spot: Spot,
) -> PyResult<PyMemory> {
    allocate_from(py, &Supply::Usual, kind, size, alignment, spot)
}

pub(super) fn allocate_from(
    py: Python<'_>,
    supply: &Supply,
    kind: UsmKind,
    size: usize,
    alignment: usize,
    spot: Spot,
) -> PyResult<PyMemory> {
    supply.check_place(&spot)?;
    let allocation = supply.allocate(py, &spot, kind, size, alignment)?;
    let pointer = allocation.as_ptr().expose_provenance();
    let owner = Owner::Allocation(Arc::new(allocation));
    Ok(PyMemory {
        alignment,
        ..spot.memory(pointer, size, kind, false, owner)
    })
}

/// A new allocation with the bytes of `source`.
fn copy_of(
    py: Python<'_>,
    supply: &Supply,
    kind: UsmKind,
    source: &PyMemory,
    alignment: usize,
    spot: Spot,
) -> PyResult<PyMemory> {
    let copy = allocate_from(py, supply, kind, source.nbytes, alignment, spot)?;
    source.after_queue(py)?;
    // SAFETY: both are alive until this returns, and as large as each other.
    unsafe {
        transfer::copy_between(
            py,
            &copy.place,
            copy.pointer,
            &source.place,
            source.pointer,
            source.nbytes,
        )
    }?;
    Ok(copy)
}

/// The same memory with another queue, which must be of its context.
fn on_queue(memory: PyMemory, spot: Spot) -> PyResult<PyMemory> {
    if memory.place.context() != spot.place.context() {
        return Err(PyValueError::new_err(
            "the queue's context is not the one of the argument's memory; pass copy=True for a copy there",
        ));
    }
    Ok(PyMemory {
        queue: spot.queue,
        in_order: spot.in_order,
        ..memory
    })
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
    if object.lt(0)? {
        return Err(PyValueError::new_err(format!(
            "the number of bytes must not be negative, as {object} is"
        )));
    }
    object
        .extract::<isize>()
        .map(isize::unsigned_abs)
        .map_err(|_| {
            USMAllocationError::new_err(format!(
                "cannot allocate {object} bytes: no machine can address more than {}",
                isize::MAX
            ))
        })
}

pub(super) fn alignment(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !is_integral(object)? {
        return Err(PyTypeError::new_err(format!(
            "alignment must be an integer, not {}",
            object.get_type().name()?
        )));
    }
    // Of no use as an alignment either, but told with the limit by the allocation.
    object.extract::<usize>().map_err(|_| {
        PyValueError::new_err(format!(
            "alignment must be 0 or a power of two of at most {} bytes, not {object}",
            crate::usm::LARGEST_ALIGNMENT
        ))
    })
}
