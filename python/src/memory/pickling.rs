//! Pickling, whose states `zeusm/_pickling.py` makes and reads.

use pyo3::prelude::*;

use super::base::PyMemory;
use crate::interpreter::intern;

/// The protocol of the state that `__reduce__` returns.
pub(crate) const PLAIN_PROTOCOL: i32 = 2;

#[pymethods]
impl PyMemory {
    /// As that of `object`, this calls a `__reduce__` that the class of the object overrides.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let name = intern!(py, "__reduce__");
        let own = slf.get_type().getattr(name)?;
        if !own.is(py.get_type::<Self>().getattr(name)?) {
            return slf.call_method0(name);
        }
        Self::reduced(slf, protocol)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::reduced(slf, PLAIN_PROTOCOL)
    }
}

impl PyMemory {
    /// The function that unpickles, and its arguments.
    fn reduced<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        let (py, memory) = (slf.py(), slf.get());
        let arguments = (slf, protocol, memory.terms.alignment(), memory.kind.name());
        // The module of the function that unpickles: cloudpickle, which Ray uses, copies a function whose module is not imported.
        py.import("zeusm.memory")?;
        let module = py.import("zeusm._pickling")?;
        module.call_method1("reduce_memory", arguments)
    }
}
