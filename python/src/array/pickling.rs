//! Pickling: the memory object that holds the elements, and the layout in it.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::class::UsmArray;
use super::make;
use super::plan::Plan;
use crate::errors::OrRaise;
use crate::memory::{PLAIN_PROTOCOL, object};
use crate::parse::dtype;

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
            let layout = self.layout.from_lowest().or_raise()?;
            Self::new(&memory, self.element.clone(), layout)?
        } else {
            make::copy(py, &Plan::copy_of(self), self)?
        };
        let layout = &array.layout;
        let dtype = match array.element.record() {
            Some(record) => dtype::fields(py, record)?.into_any(),
            None => {
                let name = match array.element.narrow() {
                    Some(_) => dtype::name(&array.element),
                    None => array.element.typestr(),
                };
                name.into_pyobject(py)?.into_any()
            }
        };
        let module = py.import("zeusm._pickling")?;
        let state = (
            module.getattr("VERSION")?,
            array.pinned().object().clone_ref(py),
            dtype,
            PyTuple::new(py, layout.shape())?,
            PyTuple::new(py, layout.element_strides().or_raise()?)?,
            layout.element_offset().or_raise()?,
        );
        let rebuild = module.getattr("_array_from_pickle")?;
        Ok((rebuild, state.into_pyobject(py)?.into_any()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        self.__reduce_ex__(py, PLAIN_PROTOCOL)
    }
}
