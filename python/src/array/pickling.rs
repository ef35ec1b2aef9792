//! Pickling: the memory object that holds the elements, and the layout in it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::UsmArray;
use super::class::invalid;
use super::create;
use crate::memory::object;

/// The version of the pickled state.
const VERSION: u32 = 1;

#[pymethods]
impl UsmArray {
    /// The memory object supports all protocols, and out-of-band buffers without a copy. Elements with gaps between them are
    /// copied together first.
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        _protocol: i32,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let is_packed = self.layout.extent().len() == self.layout.nbytes();
        let array = if is_packed && self.layout.elements() > 0 {
            let memory = object(py, self.extent_memory(py)?)?;
            let layout = self.layout.from_lowest().map_err(|error| invalid(&error))?;
            Self::new(&memory, self.item, layout)?
        } else {
            create::placed(py, self.share(py)?, None, None, None, Some(true))?
        };
        let layout = &array.layout;
        let state = (
            VERSION,
            array.pinned().object().clone_ref(py),
            array.item.to_string(),
            PyTuple::new(py, layout.shape())?,
            PyTuple::new(py, layout.element_strides())?,
            layout.offset(),
        );
        let rebuild = py.import("zeusm")?.getattr("_array_from_pickle")?;
        Ok((rebuild, state.into_pyobject(py)?.into_any()))
    }
}

/// Unpickles an array: a view of the unpickled memory, which checks the layout.
#[pyfunction(name = "_array_from_pickle")]
#[pyo3(signature = (version, *state))]
pub(crate) fn array_from_pickle<'py>(
    version: u32,
    state: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    if version != VERSION {
        return Err(PyValueError::new_err(format!(
            "the pickle of an array has version {version}, and this zeusm reads version {VERSION}: use the zeusm that \
             wrote it, or a newer one"
        )));
    }
    let memory = state.get_item(0)?;
    memory.call_method1("view", state.get_slice(1, state.len()))
}
