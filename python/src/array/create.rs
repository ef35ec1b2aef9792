//! `empty` and `asarray`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::class::UsmArray;
use super::plan::{Asked, Plan};
use super::stack::stacked;
use super::{adopt, host, make};
use crate::parse::{BoolOrInt, interface, shape};

/// A new array of uninitialized elements.
///
/// Parameters
/// ----------
/// shape : int or sequence of int
///     The dimensions.
/// dtype : optional
///     Any object that NumPy accepts as a dtype; float64 by default.
/// usm_type : str
///     'device', 'shared' or 'host'.
/// device, queue : optional
///     At most one of them: a `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, the `device` of another array, a filter
///     string, a pair of DLPack like `(14, 0)` or a capsule, which determines the context and the device.
/// order : str
///     'C' for row-major, 'F' for column-major.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// USMAllocationError
///     When the allocation fails.
/// ValueError, TypeError
///     For arguments of a wrong value or type.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> zeusm.empty((2, 3), "float32", usm_type="shared").nbytes
/// 24
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, usm_type="device", device=None, queue=None, order="C"))]
pub(crate) fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: &str,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: &str,
) -> PyResult<UsmArray> {
    let py = shape.py();
    let asked = Asked {
        order: Some(shape::order(order)?),
        ..Asked::read(dtype, Some(usm_type), device, queue, None)?
    };
    let shape = shape::integers(shape, "shape")?;
    make::empty(py, Plan::empty(py, asked, &shape)?)
}

/// An array in USM with the elements of `obj`: a view if that is USM of the requested kind and device, else a copy.
///
/// Parameters
/// ----------
/// obj
///     An object with `__sycl_usm_array_interface__` or `__cuda_array_interface__`, or any object that NumPy converts to an
///     array. CUDA memory is no USM, so it is copied, through host memory. A list or tuple of arrays in USM becomes one array.
/// dtype : optional
///     The element type. NumPy converts host data to it; USM is not converted and must have this type.
/// usm_type : str, optional
///     'device', 'shared' or 'host'; by default the kind of `obj`, and 'device' for host data.
/// device, queue : optional
///     At most one of them, as for `empty`; by default the context and device of `obj`.
/// order : str, optional
///     'C' or 'F'; by default, or for 'K', the order of `obj` in memory.
/// copy : bool, optional
///     None: copy only if needed; False: never copy; True: always copy.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// ValueError
///     When `copy` is False and a copy is needed, or an argument has a wrong value.
/// TypeError
///     For elements of an unsupported type, or USM of another type than `dtype`.
/// USMAllocationError
///     When the allocation fails.
///
/// Examples
/// --------
/// >>> import numpy, zeusm
/// >>> array = zeusm.asarray(numpy.eye(2), usm_type="shared")
/// >>> numpy.asarray(array).tolist()
/// [[1.0, 0.0], [0.0, 1.0]]
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, *, usm_type=None, device=None, queue=None, order=None, copy=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn asarray(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    usm_type: Option<&str>,
    device: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    order: Option<&str>,
    copy: Option<BoolOrInt>,
) -> PyResult<UsmArray> {
    let py = obj.py();
    let asked = Asked {
        copy: copy.map(|copy| copy.0),
        ..Asked::read(dtype, usm_type, device, queue, order)?
    };
    if let Some(array) = adopt::array(obj)? {
        return make::of_usm(py, &Plan::of_usm(asked, &array)?, array);
    }
    if let Some(array) = stacked(obj, &asked, 0)? {
        return Ok(array);
    }
    if asked.copy == Some(false) {
        return Err(PyValueError::new_err(
            "data of the host, or of CUDA, cannot become USM without a copy",
        ));
    }
    if let Some(found) = interface::read_cuda(obj)? {
        let (element, layout) = (found.element.clone(), found.layout.clone());
        let plan = Plan::elsewhere(py, asked, "CUDA memory", element, layout)?;
        return make::of_cuda(obj, &plan, &found);
    }
    let (source, element, layout) = host::converted(obj, asked.element.as_ref())?;
    let plan = Plan::elsewhere(py, asked, "host memory", element, layout)?;
    make::of_numpy(py, &plan, &source)
}
