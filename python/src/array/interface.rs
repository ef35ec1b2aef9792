//! Import and export of arrays by `__sycl_usm_array_interface__`.

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::adopt;
use super::class::UsmArray;
use crate::dpctl;
use crate::errors::OrRaise;
use crate::interpreter::intern;
use crate::memory::note_import_by_address;
use crate::parse::dtype;

#[pymethods]
impl UsmArray {
    /// The interface for other packages to use the array in place; strides and offset count elements.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.memory();
        let layout = &self.layout;
        self.check_typestr().map_err(PyAttributeError::new_err)?;
        // A consumer that gets the context makes a queue of its own, and SYCL packages refuse operands of different queues.
        let syclobj = dpctl::new_capsule(py, memory.binding.queue_or_cached(py)?.reference())?;
        self.check_alignment().map_err(PyValueError::new_err)?;
        let strides = match layout.is_c_contiguous() {
            true => None,
            false => {
                let strides = layout.element_strides().or_raise()?;
                Some(PyTuple::new(py, strides)?)
            }
        };
        // Without elements, so that the pointer is within the memory: dpctl and dpnp refuse others, even for no elements.
        let offset = match layout.elements() {
            0 => 0,
            _ => layout.element_offset().or_raise()?,
        };
        let address = memory.for_export(py)?;
        memory.export_state.mark_exported();
        let dictionary = PyDict::new(py);
        dictionary.set_item(intern!(py, "data"), (address, memory.terms.is_read_only()))?;
        dictionary.set_item(intern!(py, "shape"), PyTuple::new(py, layout.shape())?)?;
        dictionary.set_item(intern!(py, "strides"), strides)?;
        dictionary.set_item(intern!(py, "offset"), offset)?;
        dictionary.set_item(intern!(py, "typestr"), self.element.typestr())?;
        if let Some(record) = self.element.record() {
            // The interface calls it typedescr, NumPy descr.
            let fields = dtype::fields(py, record)?;
            dictionary.set_item(intern!(py, "typedescr"), &fields)?;
            dictionary.set_item(intern!(py, "descr"), fields)?;
        }
        dictionary.set_item(intern!(py, "version"), 1)?;
        dictionary.set_item(intern!(py, "syclobj"), syclobj)?;
        Ok(dictionary)
    }
}

/// Wraps any object with `__sycl_usm_array_interface__` in an array without a copy, and keeps the object alive.
///
/// Parameters
/// ----------
/// obj
///     An object with the interface: an array of dpctl, dpnp or zeusm, for instance.
///
/// Returns
/// -------
/// UsmArray
///     Its shape, strides and dtype are those of `obj`; `base.reference_obj` is `obj`, unless that is zeusm's, whose memory
///     it shares.
///
/// Raises
/// ------
/// ValueError
///     When there is no interface, it is inconsistent in itself or with the context or the allocation, or its elements are
///     of an unsupported type.
/// TypeError
///     When a field has a value of the wrong type.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.asarray([1, 2, 3], dtype="uint8")
/// >>> zeusm.as_usm_array(array[::2]).strides
/// (2,)
#[pyfunction]
pub(crate) fn as_usm_array(obj: &Bound<'_, PyAny>) -> PyResult<UsmArray> {
    match adopt::array(obj)? {
        Some(array) => Ok(array),
        None => adopt::refuse(obj),
    }
}

/// Wraps the memory that a `__sycl_usm_array_interface__` dictionary describes in an array, without a copy.
///
/// A dictionary refers to memory and does not own it. Without `owner`, nothing keeps the memory alive, and the array must
/// not be used after the memory is freed. Pass the object that exported the dictionary as `owner`, or use `as_usm_array`,
/// which keeps it alive.
///
/// Parameters
/// ----------
/// desc : dict
///     The dictionary.
/// owner : optional
///     The object that owns the memory; the array keeps it alive. By default, the caller has to keep the memory alive.
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
    let array = adopt::described(&owner, desc)?;
    note_import_by_address(array.memory().kind);
    Ok(array)
}

/// Returns dpctl's cached queue of the array's context and device, for packages that use it for any array. The work on the
/// array's own queue is complete when this returns, and accesses to the array wait for both queues from now on.
#[pyfunction(name = "_shared_queue")]
pub(crate) fn shared_queue(py: Python<'_>, array: &UsmArray) -> PyResult<Py<PyAny>> {
    let memory = array.memory();
    let shared = memory
        .context_device()
        .share_queue(py, memory.binding.queue())?;
    memory.for_queue(py)?;
    Ok(shared.object().clone_ref(py))
}
