//! A memory object in use.

use pyo3::prelude::*;

use super::PyMemory;

/// A memory object that is used, and so cannot be closed, until this is dropped.
pub(crate) struct Held(Py<PyMemory>);

impl Held {
    /// Begins the use.
    ///
    /// # Errors
    /// `ValueError` once the memory was closed.
    pub(crate) fn new(memory: &Bound<'_, PyMemory>) -> PyResult<Self> {
        memory.get().uses.begin()?;
        Ok(Self(memory.clone().unbind()))
    }

    /// Another use of the same memory.
    pub(crate) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(self.0.bind(py))
    }

    pub(crate) fn memory(&self) -> &PyMemory {
        self.0.get()
    }

    pub(crate) fn object(&self) -> &Py<PyMemory> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.get().uses.end();
    }
}
