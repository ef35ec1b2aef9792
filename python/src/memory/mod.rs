//! `_Memory`: what the three classes of USM objects have in common.

mod asynchronous;
mod gate;
mod held;
mod lifetime;
mod owner;
mod pickling;
mod properties;
mod reach;
mod transfers;

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::buffer::HostBuffer;
use super::place::Place;
use super::spot::Spot;
use super::syclobj::Target;
use super::uses::Uses;
use zeusm::process::Mutex;
use zeusm::usm::UsmKind;

pub(super) use gate::Address;
pub(super) use held::Held;
pub(super) use owner::Owner;
pub(super) use pickling::from_pickle;
pub(super) use reach::Reach;

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
    pub(super) address: Address,
    pub(super) nbytes: usize,
    pub(super) kind: UsmKind,
    pub(super) read_only: bool,
    pub(super) spot: Arc<Spot>,
    /// Of the alignment that was asked for, by how many bits 1 is shifted; 0 for none.
    pub(super) alignment_bits: u8,
    /// None once the object is closed.
    pub(super) owner: Mutex<Option<Owner>>,
    pub(super) uses: Uses,
    /// Unless others know the memory, nothing of a SYCL queue has to be waited for. A memoryview does not count, as what
    /// looks at it is the host.
    pub(super) reach: Reach,
}

impl PyMemory {
    /// Another object for the same memory.
    ///
    /// # Errors
    /// `ValueError` once closed.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        let _use = self.uses.guard()?;
        let owner = self.share_owner(py);
        // Neither object sees who learns of the memory from the other one.
        self.reach.make_known();
        Ok(Self {
            address: self.address,
            nbytes: self.nbytes,
            kind: self.kind,
            read_only: self.read_only,
            spot: Arc::clone(&self.spot),
            alignment_bits: self.alignment_bits,
            owner: Mutex::new(owner),
            uses: Uses::default(),
            reach: Reach::known(),
        })
    }

    /// Another owner of the memory; None once closed.
    pub(super) fn share_owner(&self, py: Python<'_>) -> Option<Owner> {
        let mut owner = self.owner.lock();
        let (kept, shared) = owner.take()?.share(py);
        *owner = Some(kept);
        Some(shared)
    }

    /// The alignment in bytes that was asked for; 0 for none.
    fn alignment(&self) -> usize {
        match self.alignment_bits {
            0 => 0,
            bits => 1 << bits,
        }
    }

    /// Whether the host may look at the memory.
    pub(super) fn is_hosts(&self) -> bool {
        self.kind.is_host_accessible()
    }

    pub(super) fn place(&self) -> &Arc<Place> {
        self.spot.place()
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
        // The memory's own context tells, for some drivers know the pointers of all their contexts.
        let is_there = self
            .place()
            .sycl()
            .is_ok_and(|context| *context == target.context);
        Ok(is_there.then_some(self.kind))
    }
}
