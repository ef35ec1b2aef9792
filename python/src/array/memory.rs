//! The methods of memory objects that return arrays and DLPack capsules.

use pyo3::prelude::*;

use super::{UsmArray, dlpack_export};
use crate::errors::OrRaise;
use crate::memory::PyMemory;
use crate::parse;
use zeusm::suai::{ElementType, Layout};

impl UsmArray {
    /// The bytes of a memory object, as a one-dimensional view.
    pub(super) fn bytes(memory: &Bound<'_, PyMemory>) -> PyResult<Self> {
        let layout = Layout::new(&[memory.get().nbytes as i64], None, 0, 1).or_raise()?;
        Self::new(memory, ElementType::BYTE, layout)
    }
}

#[pymethods]
impl PyMemory {
    /// An array in this memory.
    ///
    /// Parameters
    /// ----------
    /// dtype
    ///     The type of the elements: any object that NumPy accepts as a dtype.
    /// shape : int or sequence of int, optional
    ///     By default, one dimension with all elements from `offset` to the end.
    /// strides : sequence of int, optional
    ///     In elements; may be negative; by default row-major without gaps.
    /// offset : int
    ///     In elements, from the beginning of the memory to the element with all indices 0.
    ///
    /// Returns
    /// -------
    /// UsmArray
    ///     A view; its `base` is this memory.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When the array extends beyond this memory.
    /// TypeError
    ///     For arguments of the wrong type.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> matrix = zm.MemoryUSMShared(24).view("float32", (2, 3))
    /// >>> matrix.shape, matrix.strides
    /// ((2, 3), (3, 1))
    #[pyo3(signature = (dtype, shape=None, strides=None, offset=0))]
    fn view(
        slf: &Bound<'_, Self>,
        dtype: &Bound<'_, PyAny>,
        shape: Option<&Bound<'_, PyAny>>,
        strides: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parse::offset)] offset: i64,
    ) -> PyResult<UsmArray> {
        UsmArray::view(slf, dtype, shape, strides, offset)
    }

    /// A DLPack capsule of the bytes; the arguments are those of `UsmArray.__dlpack__`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = UsmArray::bytes(slf)?;
        dlpack_export::dlpack(slf.py(), &bytes, stream, max_version, dl_device, copy)
    }

    /// The DLPack device type and number.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        dlpack_export::device(py, self)
    }
}
