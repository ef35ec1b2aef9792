//! Pickling: the memory object that holds the elements, and the layout in it.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::class::{UsmArray, invalid};
use super::make;
use super::plan::Plan;
use crate::memory::object;
use crate::parse::{dtype, pickle};

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
        let is_packed = self.layout.extent().len() == self.layout.nbytes()
            && self.layout.element_strides().is_ok();
        let array = if is_packed && self.layout.elements() > 0 {
            let memory = object(py, self.extent_memory(py)?)?;
            let layout = self.layout.from_lowest().map_err(|error| invalid(&error))?;
            Self::new(&memory, self.element.clone(), layout)?
        } else {
            make::copy(py, &Plan::copy_of(self), self)?
        };
        let layout = &array.layout;
        let dtype = match array.element.record() {
            Some(record) => dtype::fields(py, record)?.into_any(),
            None => array.element.typestr().into_pyobject(py)?.into_any(),
        };
        let in_elements = |error| invalid(&error);
        let state = (
            VERSION,
            array.pinned().object().clone_ref(py),
            dtype,
            PyTuple::new(py, layout.shape())?,
            PyTuple::new(py, layout.element_strides().map_err(in_elements)?)?,
            layout.element_offset().map_err(in_elements)?,
        );
        let rebuild = py.import("zeusm")?.getattr("_array_from_pickle")?;
        Ok((rebuild, state.into_pyobject(py)?.into_any()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        self.__reduce_ex__(py, pickle::PLAIN_PROTOCOL)
    }
}

/// Unpickles an array: a view of the unpickled memory, which checks the layout.
#[pyfunction(name = "_array_from_pickle")]
#[pyo3(signature = (version, *state))]
pub(crate) fn array_from_pickle<'py>(
    version: u32,
    state: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    pickle::check_version("an array", version, VERSION)?;
    let memory = state.get_item(0)?;
    let Ok(fields) = state.get_item(1)?.cast_into::<PyList>() else {
        return memory.call_method1("view", state.get_slice(1, state.len()));
    };
    let dtype = dtype::of_fields(&fields)?;
    let layout = state.get_slice(2, state.len());
    let arguments = PyTuple::new(state.py(), [dtype])?.add(layout)?;
    memory.call_method1("view", arguments.cast_into::<PyTuple>()?)
}
