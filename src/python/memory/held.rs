//! A memory object in use.

use pyo3::prelude::*;

use super::PyMemory;

/// A memory object that is used, and so cannot be closed, until this is dropped.
pub(in crate::python) struct Held(Py<PyMemory>);

impl Held {
    /// Begins the use.
    ///
    /// # Errors
    /// `ValueError` once the memory was closed.
    pub(in crate::python) fn new(memory: &Bound<'_, PyMemory>) -> PyResult<Self> {
        memory.get().uses.begin()?;
        Ok(Self(memory.clone().unbind()))
    }

    /// Another use of the same memory.
    pub(in crate::python) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(self.0.bind(py))
    }

    pub(in crate::python) fn memory(&self) -> &PyMemory {
        self.0.get()
    }

    pub(in crate::python) fn object(&self) -> &Py<PyMemory> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.get().uses.end();
    }
}
