//! Import and export of arrays by `__sycl_usm_array_interface__`.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::UsmArray;
use super::class::invalid;
use crate::memory::object;
use crate::parse::{dtype, interface};
use crate::{adopt, dpctl};

/// The dictionary of an array.
pub(super) fn dictionary<'py>(py: Python<'py>, array: &UsmArray) -> PyResult<Bound<'py, PyDict>> {
    let memory = array.memory();
    let layout = &array.layout;
    let syclobj = dpctl::new_capsule(py, memory.context_device().sycl()?)?;
    let strides = match layout.is_c_contiguous() {
        true => None,
        false => Some(PyTuple::new(py, layout.element_strides())?),
    };
    let address = memory.for_export(py)?;
    memory.export_state.mark_exported();
    let dictionary = PyDict::new(py);
    dictionary.set_item(intern!(py, "data"), (address, memory.read_only))?;
    dictionary.set_item(intern!(py, "shape"), PyTuple::new(py, layout.shape())?)?;
    dictionary.set_item(intern!(py, "strides"), strides)?;
    dictionary.set_item(intern!(py, "offset"), array.offset_or_zero())?;
    dictionary.set_item(intern!(py, "typestr"), array.item.to_string())?;
    dictionary.set_item(intern!(py, "version"), 1)?;
    dictionary.set_item(intern!(py, "syclobj"), syclobj)?;
    Ok(dictionary)
}

/// The array of any object with `__sycl_usm_array_interface__`, without a copy; the object is kept alive.
///
/// Parameters
/// ----------
/// obj
///     An object with the interface: an array of dpctl, dpnp or zeusm, for instance.
///
/// Returns
/// -------
/// UsmArray
///     Its shape, strides and dtype are those of `obj`; `base.reference_obj` is `obj`.
///
/// Raises
/// ------
/// ValueError
///     When there is no interface, or it contradicts itself, the context or the allocation, or its elements are of a type
///     that arrays do not have.
/// TypeError
///     When a field has a value of a wrong type.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.asarray([1, 2, 3], dtype="uint8")
/// >>> zeusm.as_usm_array(array[::2]).strides
/// (2,)
#[pyfunction]
pub(crate) fn as_usm_array(obj: &Bound<'_, PyAny>) -> PyResult<UsmArray> {
    match interface::dictionary(obj)? {
        Some(dictionary) => described(obj, &dictionary),
        None => Err(PyValueError::new_err(format!(
            "{} has no __sycl_usm_array_interface__",
            obj.get_type().name()?
        ))),
    }
}

/// The array that a `__sycl_usm_array_interface__` dictionary describes, without a copy.
///
/// A dictionary names memory and does not own it. Unless `owner` is given, nothing keeps the memory alive: once its owner
/// frees it, the array accesses freed memory. Give the object that the dictionary is of, or use
/// `as_usm_array`, which does.
///
/// Parameters
/// ----------
/// desc : dict
///     The dictionary.
/// owner : optional
///     The object that owns the memory: it lives for as long as the array does. By default, the caller sees to that.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// ValueError, TypeError
///     As of `as_usm_array`.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.asarray([1, 2, 3])
/// >>> desc = array.__sycl_usm_array_interface__
/// >>> zeusm.from_sycl_usm_array_interface(desc, owner=array)._pointer == array._pointer
/// True
#[pyfunction]
#[pyo3(signature = (desc, owner=None))]
pub(crate) fn from_sycl_usm_array_interface(
    desc: &Bound<'_, PyDict>,
    owner: Option<Bound<'_, PyAny>>,
) -> PyResult<UsmArray> {
    let owner = owner.unwrap_or_else(|| desc.py().None().into_bound(desc.py()));
    described(&owner, desc)
}

fn described(owner: &Bound<'_, PyAny>, dictionary: &Bound<'_, PyDict>) -> PyResult<UsmArray> {
    let py = owner.py();
    let (memory, found) = adopt::from_interface(owner, dictionary)?;
    if !dtype::is_supported(found.item) {
        return Err(interface::malformed(dtype::unsupported(found.item)));
    }
    let base = object(py, memory)?;
    // The memory begins with the lowest element.
    let before = found.layout.extent().start() / found.layout.itemsize().cast_signed();
    let layout = found
        .layout
        .rebased(before)
        .map_err(|error| invalid(&error))?;
    UsmArray::new(&base, found.item, layout)
}
