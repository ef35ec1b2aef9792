//! `_Memory`: what the three classes of USM objects have in common.

mod asynchronous;
mod lifetime;
mod pickling;
mod properties;
mod transfers;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::buffer::HostBuffer;
use super::place::Place;
use super::syclobj::Target;
use super::uses::Uses;
use crate::ipc::Mapping;
use crate::usm::{Allocation, UsmKind};

pub(super) use pickling::from_pickle;

/// Who keeps the memory alive.
pub(super) enum Owner {
    /// zeusm, with everybody who shares it.
    Allocation(Arc<Allocation>),
    /// The object whose interface was read.
    Object(Py<PyAny>),
    /// Another process.
    Mapping(Mapping),
}

/// Untyped USM. Use :class:`MemoryUSMShared`, :class:`MemoryUSMDevice` or :class:`MemoryUSMHost`.
///
/// Objects may be used from several threads at once: everything here but being closed is fixed at construction. What
/// the memory itself holds is ordered by its users.
#[pyclass(
    name = "_Memory",
    module = "zeusm.memory",
    subclass,
    weakref,
    frozen,
    mapping
)]
pub(super) struct PyMemory {
    pub(super) pointer: usize,
    pub(super) nbytes: usize,
    pub(super) kind: UsmKind,
    pub(super) read_only: bool,
    pub(super) place: Arc<Place>,
    /// The alignment in bytes that was asked for; 0 for none.
    pub(super) alignment: usize,
    /// None once the object is closed.
    pub(super) owner: Mutex<Option<Owner>>,
    pub(super) uses: Uses,
    /// Whether the interface was ever read, so that others may use the memory unseen.
    pub(super) exported: AtomicBool,
    /// The `dpctl.SyclQueue` that it was made with, or that was made for it when somebody asked.
    pub(super) queue: PyOnceLock<Py<PyAny>>,
    /// Whether that queue is in order, so that asynchronous work here comes after what was submitted to it.
    pub(super) in_order: bool,
}

impl PyMemory {
    /// Another object for the same memory.
    ///
    /// # Errors
    /// `ValueError` once closed.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        let queue = PyOnceLock::new();
        if let Some(known) = self.queue.get(py) {
            // A fresh cell is empty, so this succeeds.
            let _ = queue.set(py, known.clone_ref(py));
        }
        let _use = self.uses.guard()?;
        let owner = self.owner.lock().as_ref().map(|owner| match owner {
            Owner::Allocation(allocation) => Owner::Allocation(Arc::clone(allocation)),
            Owner::Object(object) => Owner::Object(object.clone_ref(py)),
            Owner::Mapping(mapping) => Owner::Mapping(mapping.clone()),
        });
        Ok(Self {
            pointer: self.pointer,
            nbytes: self.nbytes,
            kind: self.kind,
            read_only: self.read_only,
            place: Arc::clone(&self.place),
            alignment: self.alignment,
            owner: Mutex::new(owner),
            uses: Uses::default(),
            exported: AtomicBool::new(false),
            queue,
            in_order: self.in_order,
        })
    }

    /// Lets what was submitted to the memory's SYCL queue happen first: kernels on this memory, as far as can be known.
    /// An out-of-order queue, like those of dpctl and dpnp, would not order a copy after them either.
    pub(super) fn after_queue(&self, py: Python<'_>) -> PyResult<()> {
        match self.queue.get(py) {
            Some(queue) => queue.call_method0(py, "wait").map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn check_writable(&self) -> PyResult<()> {
        if self.read_only {
            return Err(PyValueError::new_err(
                "the memory is read-only: its exporter marked it so",
            ));
        }
        Ok(())
    }

    pub(super) fn check_fits(&self, what: &str, size: usize) -> PyResult<()> {
        if size > self.nbytes {
            return Err(PyValueError::new_err(format!(
                "{what} of {size} bytes is too large for USM memory of {} bytes",
                self.nbytes
            )));
        }
        Ok(())
    }

    pub(super) fn check_holds(&self, destination: &HostBuffer) -> PyResult<()> {
        if destination.size() < self.nbytes {
            return Err(PyValueError::new_err(format!(
                "destination of {} bytes is too small for USM memory of {} bytes",
                destination.size(),
                self.nbytes
            )));
        }
        Ok(())
    }

    /// The kind as a SYCL object's context sees it; `None` when the memory is unknown there.
    pub(super) fn kind_in(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<UsmKind>> {
        let Some(syclobj) = syclobj.filter(|object| !object.is_none()) else {
            return Ok(Some(self.kind));
        };
        let target = Target::read(syclobj, "syclobj")?;
        target.accept(syclobj.py());
        Ok(target.context.pointer_kind(self.pointer))
    }
}
