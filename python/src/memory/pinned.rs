//! A pinned memory object.

use std::ops::Deref;

use pyo3::prelude::*;

use super::base::PyMemory;

/// A memory object that is pinned, and so cannot be closed, until this is dropped.
pub(crate) struct Pinned(Py<PyMemory>);

impl Pinned {
    /// Pins the memory.
    ///
    /// # Errors
    /// `ValueError` when the memory is closed.
    pub(crate) fn new(memory: &Bound<'_, PyMemory>) -> PyResult<Self> {
        memory.get().pins.acquire()?;
        Ok(Self(memory.clone().unbind()))
    }

    /// Another pin of the same memory.
    pub(crate) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(self.0.bind(py))
    }

    pub(crate) fn object(&self) -> &Py<PyMemory> {
        &self.0
    }
}

impl Deref for Pinned {
    type Target = PyMemory;

    fn deref(&self) -> &PyMemory {
        self.0.get()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.0.get().pins.release();
    }
}
