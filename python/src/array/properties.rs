//! The properties of an array.

use pyo3::exceptions::{PyModuleNotFoundError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::class::UsmArray;
use super::host;
use crate::errors::{LevelZeroError, OrRaise};
use crate::getters::getters;
use crate::interpreter::{intern, size_alone};
use crate::memory::PyMemory;
use crate::parse::dtype;
use crate::shown;
use zeusm_process::Bytes;

#[pymethods]
impl UsmArray {
    /// Address of the element with all indices 0; the address of the memory if there are no elements.
    #[getter]
    fn _pointer(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.first(self.memory().for_export(py)?))
    }

    /// The size in bytes of the object and of the elements, whose memory `base` has.
    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(size_alone(slf.as_any())? + slf.get().layout.nbytes())
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.layout.shape().first() {
            Some(&size) => Ok(size),
            None => Err(PyTypeError::new_err(
                "an array of no dimensions has no len()",
            )),
        }
    }

    /// What the array is, and its elements as NumPy shows them, if it is there and has their type.
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, array) = (slf.py(), slf.get());
        let memory = array.memory();
        let is_absent = |error: &PyErr| {
            error.is_instance_of::<PyModuleNotFoundError>(py)
                || error.is_instance_of::<PyTypeError>(py)
        };
        let elements = match dtype::object(py, &array.element).and_then(|_| host::shown(slf)) {
            Ok(elements) => format!(":\n{elements}"),
            Err(error) if is_absent(&error) => String::new(),
            Err(error) if error.is_instance_of::<LevelZeroError>(py) => {
                format!(": {}", shown::text(error.value(py))?)
            }
            Err(error) => return Err(error),
        };
        Ok(format!(
            "<zeusm array of shape {} and dtype {}, USM-{} on {}{elements}>",
            shown::text(&array.shape(py)?.into_any())?,
            dtype::name(&array.element),
            memory.kind,
            memory.context_device().device()
        ))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, array, memory) = (slf.py(), slf.get(), slf.get().memory());
        let device = format!("{}", memory.context_device().device());
        let cells = [
            ("Shape", shown::text(&array.shape(py)?.into_any())?),
            ("dtype", dtype::name(&array.element)),
            ("Kind", format!("{}", memory.kind)),
            ("Size", format!("{}", Bytes(array.nbytes() as u64))),
            ("Device", device.clone()),
        ];
        // Of `repr`, the elements or why there are none.
        let shown = Self::__repr__(slf)?;
        let (_, below) = shown.split_once(&device).unwrap_or_default();
        let below = below.trim_start_matches([':', '\n', ' ']);
        shown::table(py, "zeusm array", &cells, below.trim_end_matches('>'))
    }
}

getters! {
    UsmArray,
    ">>> import zeusm\n\
     >>> array = zeusm.empty((2, 3), \"float32\", usm_type=\"shared\")";

    /// The type of the elements, a `numpy.dtype`.
    "array.dtype" => "dtype('float32')"
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::object(py, &self.element)
    }

    /// The dimensions.
    "array.shape" => "(2, 3)"
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.shape())
    }

    /// The distance from one element to the next in each dimension, in elements.
    ///
    /// A field of records whose size is no multiple of the field's has none, which is a `ValueError`. NumPy counts strides in
    /// bytes and has them.
    "array.strides, array.T.strides" => "((3, 1), (1, 3))"
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let strides = self.layout.element_strides().or_raise()?;
        PyTuple::new(py, strides)
    }

    /// The distance from the beginning of `base` to the element with all indices 0, in elements.
    "array[1, 1:].offset" => "4"
    fn offset(&self) -> PyResult<isize> {
        let offset = self.layout.element_offset();
        offset.or_raise()
    }

    /// The number of dimensions.
    "array.ndim" => "2"
    fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// The number of elements.
    "array.size" => "6"
    fn size(&self) -> usize {
        self.layout.elements()
    }

    /// The size of one element in bytes.
    "array.itemsize" => "4"
    fn itemsize(&self) -> usize {
        self.layout.itemsize()
    }

    /// The size of all elements in bytes, without the gaps between them.
    "array.nbytes" => "24"
    fn nbytes(&self) -> usize {
        self.layout.nbytes()
    }

    /// The memory object that the array is a view of.
    "array.base.nbytes, array[1].base is array.base" => "(24, True)"
    fn base(&self, py: Python<'_>) -> Py<PyMemory> {
        self.pinned().object().clone_ref(py)
    }

    /// Kind of the memory: 'shared', 'device' or 'host'.
    "array.usm_type" => "'shared'"
    fn usm_type(&self) -> &'static str {
        self.memory().kind.name()
    }

    /// Whether the exporter of the memory forbids writing.
    "array.readonly" => "False"
    fn readonly(&self) -> bool {
        self.memory().terms.is_read_only()
    }

    /// Whether the elements are in row-major order without gaps.
    "array.c_contiguous, array.T.c_contiguous" => "(True, False)"
    fn c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    /// Whether the elements are in column-major order without gaps.
    "array.f_contiguous, array.T.f_contiguous" => "(False, True)"
    fn f_contiguous(&self) -> bool {
        self.layout.is_f_contiguous()
    }

    /// The `dpctl.SyclContext` that the memory is bound to.
    "array.sycl_context == array.base.sycl_context" => "True"
    fn sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.pinned().object().bind(py).getattr(intern!(py, "sycl_context"))
    }

    /// The `dpctl.SyclDevice` that the memory was allocated for.
    "array.sycl_device == array.base.sycl_device" => "True"
    fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.pinned().object().bind(py).getattr(intern!(py, "sycl_device"))
    }

    /// What `device=` of zeusm, dpnp and dpctl takes to have another array beside this one: the `dpctl.SyclQueue` of the memory.
    "zeusm.empty(3, device=array.device).device == array.device" => "True"
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.sycl_queue(py)
    }

    /// A `dpctl.SyclQueue` of the memory's context and device.
    "array.sycl_queue.sycl_context == array.sycl_context" => "True"
    fn sycl_queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.pinned().object().bind(py).getattr(intern!(py, "sycl_queue"))
    }
}
