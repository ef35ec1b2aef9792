//! Views: arrays in the memory of another array, or of a memory object.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::class::UsmArray;
use super::make;
use super::plan::Plan;
use crate::errors::OrRaise;
use crate::memory::{PyMemory, object};
use crate::parse::{self, BoolOrInt, dtype, index, shape};
use crate::shown::naming;
use zeusm::suai::{ElementType, Layout};

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
        let element = dtype::read(dtype)?;
        let given = |value: Option<&Bound<'_, PyAny>>, role| {
            value.map(|value| shape::integers(value, role)).transpose()
        };
        let strides = given(strides, "strides")?;
        let shape = match given(shape, "shape")? {
            Some(shape) => shape,
            None if strides.is_some() => {
                return Err(PyTypeError::new_err("strides need a shape"));
            }
            None => vec![elements_from(slf.get().nbytes, &element, offset)?],
        };
        let layout = Layout::new(&shape, strides.as_deref(), offset, element.size()).or_raise()?;
        UsmArray::new(slf, element, layout)
    }
}

#[pymethods]
impl UsmArray {
    /// The transposed array: the dimensions in reverse order, or in the given one.
    ///
    /// Parameters
    /// ----------
    /// *axes : int
    ///     A permutation of the axes.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.empty((2, 3, 4)).transpose(1, 0, 2).shape
    /// (3, 2, 4)
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let py = axes.py();
        let none = matches!(axes.get_item(0), Ok(only) if axes.len() == 1 && only.is_none());
        if axes.is_empty() || none {
            return self.t(py);
        }
        let axes: Vec<isize> = shape::spread(axes, "axes")?
            .into_iter()
            .map(|axis| isize::try_from(axis).unwrap_or(isize::MAX))
            .collect();
        self.with(py, self.layout.transposed(&axes).or_raise()?)
    }

    /// The array with its dimensions in reverse order.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.asarray([[1, 2, 3], [4, 5, 6]]).T.copy_to_host().tolist()
    /// [[1, 4], [2, 5], [3, 6]]
    #[getter(T)]
    fn t(&self, py: Python<'_>) -> PyResult<Self> {
        let layout = self.layout.reversed().or_raise()?;
        self.with(py, layout)
    }

    /// The same elements in another shape.
    ///
    /// Parameters
    /// ----------
    /// *shape : int
    ///     The dimensions; one may be -1 and is computed from the number of elements.
    /// order : str
    ///     'C': the last index varies fastest; 'F': the first one.
    /// copy : bool, optional
    ///     None: a view if possible, else a copy; False: always a view; True: always a copy.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     When the shape has another number of elements, or `copy` is False and no view is possible.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.empty((2, 3)).reshape(3, -1).shape
    /// (3, 2)
    #[pyo3(signature = (*shape, order="C", copy=None))]
    fn reshape(
        &self,
        shape: &Bound<'_, PyTuple>,
        order: &str,
        copy: Option<BoolOrInt>,
    ) -> PyResult<Self> {
        let (py, copy) = (shape.py(), copy.map(|copy| copy.0));
        let wanted = shape::spread(shape, "shape")?;
        let order = shape::order(order)?;
        let view = self.layout.reshaped(&wanted, order).or_raise()?;
        match view {
            Some(layout) if copy != Some(true) => self.with(py, layout),
            None if copy == Some(false) => Err(PyValueError::new_err(format!(
                "an array of shape {:?} and strides of {:?} bytes takes a copy to have the shape {wanted:?}",
                self.layout.shape(),
                self.layout.byte_strides(),
            ))),
            _ => {
                let copied = make::copy(
                    py,
                    &Plan {
                        order: Some(order),
                        ..Plan::copy_of(self)
                    },
                    self,
                )?;
                match copied.layout.reshaped(&wanted, order).or_raise()? {
                    Some(layout) => copied.with(py, layout),
                    None => Err(PyValueError::new_err("the copy is not contiguous")),
                }
            }
        }
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(field) = field(self, key)? {
            return Ok(field);
        }
        let entries = index::read(&self.layout, key)?;
        self.with(key.py(), self.layout.index(&entries).or_raise()?)
    }
}

/// The number of elements from an offset on.
fn elements_from(nbytes: usize, element: &ElementType, offset: i64) -> PyResult<i64> {
    let size = element.size() as i64;
    let nbytes = nbytes as i64;
    if nbytes % size != 0 {
        return Err(PyValueError::new_err(format!(
            "memory of {nbytes} bytes is no whole number of elements of {size} bytes; give a shape"
        )));
    }
    let all = nbytes / size;
    if offset < 0 || offset > all {
        return Err(PyValueError::new_err(format!(
            "offset {offset} is outside of the {all} elements in the memory"
        )));
    }
    Ok(all - offset)
}

/// The field that a key names, as a view; `None` for keys that select elements.
///
/// # Errors
/// `IndexError` for a name that there is no field of, and for several names.
fn field(array: &UsmArray, key: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    let Ok(name) = key.cast::<PyString>() else {
        let is_names = |names: &Bound<'_, PyList>| {
            !names.is_empty() && names.iter().all(|name| name.is_instance_of::<PyString>())
        };
        return match key.cast::<PyList>() {
            Ok(names) if is_names(names) => Err(naming(names, |names| {
                PyIndexError::new_err(format!(
                    "an array of zeusm is indexed by one field name at a time, not by {names}: a copy to several fields \
                     would overwrite the bytes between them"
                ))
            })),
            _ => Ok(None),
        };
    };
    let name = name.to_string_lossy();
    let Some(record) = array.element.record() else {
        return Err(PyIndexError::new_err(format!(
            "the elements are of {} and have no field '{name}'",
            dtype::name(&array.element)
        )));
    };
    let (offset, field) = record.find(&name).ok_or_else(|| {
        PyIndexError::new_err(format!(
            "there is no field '{name}', only {}",
            dtype::field_names(record)
        ))
    })?;
    let size = field.element.size();
    let layout = array.layout.field(offset, &field.shape, size).or_raise()?;
    if layout.element_offset().is_ok() {
        return array.of(key.py(), field.element.clone(), layout).map(Some);
    }
    // Strides may count elements where the offset does not; then it does in memory that begins at the field.
    let field_only = array.of(key.py(), field.element.clone(), layout)?;
    let memory = object(key.py(), field_only.extent_memory(key.py())?)?;
    let layout = field_only.layout.from_lowest().or_raise()?;
    UsmArray::new(&memory, field.element.clone(), layout).map(Some)
}
