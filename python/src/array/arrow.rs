//! Import and export of arrays by Arrow's capsules.

use std::ffi::CStr;

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use super::class::UsmArray;
use super::dlpack_export::{Exported, own_device, share};
use super::dlpack_import::imported;
use super::make;
use super::plan::{self, Plan};
use crate::errors::OrRaise;
use crate::interpreter::intern;
use crate::parse::BoolOrInt;
use crate::shown::{self, class_name};
use zeusm::arrow::{DeviceArray, Schema};
use zeusm::dlpack::Device;
use zeusm::suai::Order;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const DEVICE_ARRAY: &CStr = c"arrow_device_array";

type Pair<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

#[pymethods]
impl UsmArray {
    /// A capsule with Arrow's type of the elements.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let item = self.item().map_err(PyTypeError::new_err)?;
        PyCapsule::new_with_value(py, Schema::of(item).or_raise()?, SCHEMA)
    }

    /// Capsules with Arrow's type and array, for consumers on the host. Host and shared memory of one dimension is exported in
    /// place, strided elements as a copy; Arrow takes the elements for constant.
    ///
    /// Examples
    /// --------
    /// >>> import pyarrow, zeusm
    /// >>> array = zeusm.asarray([1.5, 2.5], usm_type="shared")
    /// >>> pyarrow.array(array).buffers()[1].address == array._pointer
    /// True
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Pair<'py>> {
        let _ = requested_schema; // The consumer converts.
        let accessible = slf.get().check_host_accessible();
        accessible.map_err(PyTypeError::new_err)?;
        export(slf, Device::Cpu, ARRAY)
    }

    /// Capsules with Arrow's type and device array: device memory is on its oneAPI device, other memory on the host.
    #[pyo3(signature = (requested_schema=None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Pair<'py>> {
        let _ = requested_schema;
        let mut kwargs = kwargs.into_iter().flatten();
        if let Some((name, _)) = kwargs.find(|(_, value)| !value.is_none()) {
            return Err(PyNotImplementedError::new_err(format!(
                "zeusm knows no keyword {} of __arrow_c_device_array__",
                shown::text(&name)?
            )));
        }
        let memory = slf.get().memory();
        let device = match memory.kind.is_host_accessible() {
            true => Device::Cpu,
            false => own_device(slf.py(), memory)?,
        };
        export(slf, device, DEVICE_ARRAY)
    }
}

/// The capsules of the array. A structure for a device begins with one for the host.
fn export<'py>(
    array: &Bound<'py, UsmArray>,
    device: Device,
    name: &'static CStr,
) -> PyResult<Pair<'py>> {
    let schema = array.get().__arrow_c_schema__(array.py())?;
    let array = PyCapsule::new_with_value(array.py(), exported(array, device)?, name)?;
    Ok((schema, array))
}

/// The structure of the array, or of a contiguous copy, for a device that it is accessible on.
fn exported(array: &Bound<'_, UsmArray>, device: Device) -> PyResult<DeviceArray> {
    let (py, inner) = (array.py(), array.get());
    if inner.layout.ndim() != 1 {
        return Err(PyValueError::new_err(format!(
            "an array of {} dimensions is not exported by Arrow, whose arrays have one dimension: export array.reshape(-1) \
             or its rows",
            inner.layout.ndim()
        )));
    }
    if !inner.layout.is_c_contiguous() || inner.check_alignment().is_err() {
        let plan = Plan {
            order: Some(Order::RowMajor),
            ..Plan::copy_of(inner)
        };
        return exported(&Bound::new(py, make::copy(py, &plan, inner)?)?, device);
    }
    let memory = inner.memory();
    match device {
        Device::Cpu => memory.for_host(py, inner.extent())?,
        _ => {
            share(py, memory)?;
            memory.for_queue(py)?
        }
    };
    let pointer = inner.first(memory.for_export(py)?);
    // SAFETY: the owner has the memory, which is not closed before.
    Ok(unsafe {
        DeviceArray::export(
            device,
            pointer,
            inner.layout.elements(),
            Exported::new(array),
        )
    })
}

/// Imports an Arrow array of numbers without nulls as an array in USM: a view if its memory is USM, else a copy.
///
/// Memory of a oneAPI device is imported in place, and memory of the host if it is USM of the default context, as pyarrow's arrays
/// of zeusm's are. Other memory is copied to USM-device memory. Views are read-only, as Arrow's arrays are.
///
/// Parameters
/// ----------
/// x
///     An array of pyarrow, nanoarrow or another package with `__arrow_c_device_array__` or `__arrow_c_array__`.
/// device, copy : optional
///     As for `from_dlpack`.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// TypeError
///     When `x` has none of the methods, or its elements are no integers or floating-point numbers.
/// ValueError
///     When there are nulls.
/// BufferError
///     As of `from_dlpack`.
///
/// Examples
/// --------
/// >>> import pyarrow, zeusm
/// >>> zeusm.from_arrow(pyarrow.array([1, 2, 3]))[::-1].copy_to_host().tolist()
/// [3, 2, 1]
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub(crate) fn from_arrow(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<BoolOrInt>,
) -> PyResult<UsmArray> {
    let py = x.py();
    let (binding, copy) = (plan::device(device)?, copy.map(|copy| copy.0));
    let found = match x.getattr_opt(intern!(py, "__arrow_c_device_array__"))? {
        Some(export) => Some((export, DEVICE_ARRAY)),
        None => {
            let export = x.getattr_opt(intern!(py, "__arrow_c_array__"))?;
            export.map(|export| (export, ARRAY))
        }
    };
    let (export, name) = found.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{} has neither __arrow_c_device_array__ nor __arrow_c_array__; of a table or chunks, take one column by \
             combine_chunks()",
            class_name(x)
        ))
    })?;
    let pair = export.call0()?.cast_into::<PyTuple>()?;
    let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    // SAFETY: by Arrow's rules, capsules of these names hold valid structures, which are this consumer's.
    let structure = unsafe {
        let schema = schema.cast::<Schema>().as_ref();
        DeviceArray::to_dlpack(array.cast().as_ptr(), name == ARRAY, schema)
    };
    // SAFETY: the structure has just been made.
    unsafe { imported(py, structure.or_raise()?, binding, copy) }
}
