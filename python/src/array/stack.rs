//! Lists of arrays in USM, which become one array.

use std::iter;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::class::UsmArray;
use super::plan::{Asked, Plan};
use super::{adopt, make};
use crate::parse::dtype;
use zeusm::suai::MAX_NDIM;

/// The array of a list or tuple of arrays in USM of the same shape and type, or of such lists: a copy, by default beside the first of
/// them. `None` for anything else that NumPy converts, or refuses.
pub(super) fn stacked(
    obj: &Bound<'_, PyAny>,
    asked: &Asked,
    depth: usize,
) -> PyResult<Option<UsmArray>> {
    let py = obj.py();
    let is_list = obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>();
    // A list may contain itself.
    if !is_list || depth >= MAX_NDIM {
        return Ok(None);
    }
    let mut arrays: Vec<UsmArray> = Vec::new();
    for item in obj.try_iter()? {
        let Some(array) = part(&item?, depth)? else {
            return Ok(None);
        };
        if let Some(first) = arrays.first()
            && (first.element != array.element || first.layout.shape() != array.layout.shape())
        {
            return match [first, &array]
                .iter()
                .any(|it| it.check_host_accessible().is_err())
            {
                true => Err(differ(first, &array)),
                false => Ok(None),
            };
        }
        arrays.push(array);
    }
    let Some(first) = arrays.first() else {
        return Ok(None);
    };
    asked.check_element("USM", &first.element)?;
    if asked.copy == Some(false) {
        let refusal = "arrays of a list cannot become one without a copy";
        return Err(PyValueError::new_err(refusal));
    }
    let shape = iter::once(arrays.len()).chain(first.layout.shape().iter().copied());
    let shape: Vec<i64> = shape.map(|size| size as i64).collect();
    let memory = first.memory();
    let asked = Asked {
        element: Some(first.element.clone()),
        kind: asked.kind.or(Some(memory.kind)),
        binding: Some(Arc::clone(
            asked.binding.as_ref().unwrap_or(&memory.binding),
        )),
        order: asked.order,
        copy: asked.copy,
    };
    let all = Bound::new(py, make::empty(py, Plan::empty(py, asked, &shape)?)?)?;
    for (index, array) in arrays.into_iter().enumerate() {
        all.as_any().set_item(index, Bound::new(py, array)?)?;
    }
    all.get().share(py).map(Some)
}

/// The error for arrays that NumPy cannot convert.
fn differ(first: &UsmArray, other: &UsmArray) -> PyErr {
    let [shape, another] = [first, other].map(|it| it.layout.shape());
    let [element, its] = [first, other].map(|it| dtype::name(&it.element));
    PyValueError::new_err(format!(
        "arrays of a list need the same shape and dtype, and it has {shape:?} of {element} and {another:?} of {its}: reshape or \
         convert them before, or give copies for the host (copy_to_host())"
    ))
}

fn part(item: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<UsmArray>> {
    match adopt::array(item)? {
        Some(array) => Ok(Some(array)),
        None => stacked(item, &Asked::default(), depth + 1),
    }
}
