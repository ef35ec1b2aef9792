//! The attributes of a pointer.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::getters::getters;
use crate::parse;
use crate::resolve::{self, ContextDevice, ResolvedSyclObject};
use zeusm::usm::PointerAttributes;

/// The allocation that contains a pointer; returned by `pointer_attributes`.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.empty(10, "uint8", usm_type="shared")
/// >>> zeusm.pointer_attributes(array._pointer).usm_type
/// 'shared'
#[pyclass(name = "PointerAttributes", module = "zeusm", frozen)]
pub(crate) struct PyPointerAttributes {
    pointer: usize,
    context_device: Arc<ContextDevice>,
    attributes: PointerAttributes,
}

#[pymethods]
impl PyPointerAttributes {
    fn __repr__(&self) -> String {
        format!(
            "<{:#x}: USM-{} on {}, byte {} of {} from {:#x}, allocation {}>",
            self.pointer,
            self.attributes.kind,
            self.context_device.device(),
            self.pointer.wrapping_sub(self.attributes.base),
            self.attributes.size,
            self.attributes.base,
            self.attributes.id,
        )
    }
}

getters! {
    PyPointerAttributes,
    ">>> import zeusm\n\
     >>> array = zeusm.empty(100, \"uint8\", usm_type=\"shared\")\n\
     >>> found = zeusm.pointer_attributes(array._pointer + 10)";

    /// The pointer itself.
    "found.pointer - array._pointer" => "10"
    fn pointer(&self) -> usize {
        self.pointer
    }

    /// Kind of the memory: 'shared', 'device' or 'host'.
    "found.usm_type" => "'shared'"
    fn usm_type(&self) -> &'static str {
        self.attributes.kind.name()
    }

    /// The address of the allocation.
    "found.base == array._pointer" => "True"
    fn base(&self) -> usize {
        self.attributes.base
    }

    /// The size of the allocation in bytes.
    "found.size >= 100" => "True"
    fn size(&self) -> usize {
        self.attributes.size
    }

    /// Level Zero's id of the allocation, which is never reused. Blocks that a pool, zeusm's or the driver's, cuts from one
    /// allocation share the id, and differ in `base`.
    "found.allocation_id == zeusm.pointer_attributes(array._pointer).allocation_id" => "True"
    fn allocation_id(&self) -> u64 {
        self.attributes.id
    }

    /// Whether the host can access the memory.
    "found.host_accessible" => "True"
    fn host_accessible(&self) -> bool {
        self.attributes.kind.is_host_accessible()
    }

    /// The `dpctl.SyclContext` of the allocation.
    "found.sycl_context == array.sycl_context" => "True"
    fn sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.context_device.sycl()?;
        self.context_device.new_sycl_context(py)
    }

    /// The `dpctl.SyclDevice` that it was allocated for; None for host memory.
    "found.sycl_device == array.sycl_device" => "True"
    fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.attributes.device.is_none() {
            return Ok(None);
        }
        self.context_device.sycl()?;
        self.context_device.sycl_device(py).map(Some)
    }
}

/// Queries the attributes of a pointer from Level Zero.
///
/// Parameters
/// ----------
/// ptr : int
///     Any address.
/// context : optional
///     A `dpctl.SyclContext`, `SyclQueue` or `SyclDevice`, a filter string or a capsule whose context is queried; by default
///     the context of default allocations.
///
/// Returns
/// -------
/// PointerAttributes
///     `usm_type`, `base`, `size`, `allocation_id`, `host_accessible`, `sycl_context` and `sycl_device`.
///
/// Raises
/// ------
/// ValueError
///     When the address is not USM of that context.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.empty(10, "uint8", usm_type="host")
/// >>> found = zeusm.pointer_attributes(array._pointer + 5)
/// >>> found.usm_type, found.base == array._pointer, found.host_accessible
/// ('host', True, True)
#[pyfunction]
#[pyo3(signature = (ptr, context=None))]
pub(crate) fn pointer_attributes(
    py: Python<'_>,
    #[pyo3(from_py_with = parse::address)] ptr: usize,
    context: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyPointerAttributes> {
    let (context_device, attributes) = match context {
        Some(context) => {
            let resolved = ResolvedSyclObject::read(context, "context")?;
            let found = ContextDevice::of_pointer(&resolved.context, ptr)?;
            resolved.accept(py);
            found
        }
        None => resolve::pointer_attributes(py, ptr)?,
    };
    Ok(PyPointerAttributes {
        pointer: ptr,
        context_device,
        attributes,
    })
}
