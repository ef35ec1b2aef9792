//! The common base class of memory objects.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::fields::{ExportState, Terms, Views};
use super::owner::{Owner, OwnerSlot};
use crate::parse::HostBuffer;
use crate::pins::{Closed, Pins};
use crate::resolve::{BindingRef, ContextDevice, ResolvedSyclObject};
use zeusm::usm::UsmKind;

/// Untyped USM. Use :class:`MemoryUSMShared`, :class:`MemoryUSMDevice` or :class:`MemoryUSMHost`.
///
/// Objects are thread-safe: they are immutable except for closing. The caller has to synchronise accesses to the bytes.
#[pyclass(
    name = "_Memory",
    module = "zeusm.memory",
    subclass,
    weakref,
    frozen,
    mapping
)]
pub(crate) struct PyMemory {
    /// The address of the first byte, for arithmetic and comparison; 0 without memory. The methods `for_*` return it for each use.
    pub(crate) address: usize,
    pub(crate) nbytes: usize,
    pub(crate) kind: UsmKind,
    pub(crate) terms: Terms,
    pub(crate) binding: BindingRef,
    pub(crate) owner: OwnerSlot,
    pub(crate) pins: Pins,
    pub(crate) views: Views,
    /// Before the memory is exported, no SYCL queue has work on it. A memoryview does not export it, as only the host uses
    /// one, unless USM is imported from it.
    pub(crate) export_state: ExportState,
}

// There may be millions of objects. With the headers of the object, of the garbage collector and of weak references it has 96
// bytes.
#[cfg(not(loom))]
const _: () = assert!(size_of::<PyMemory>() == 56);

impl PyMemory {
    /// Memory that `owner` keeps alive.
    #[inline(always)] // See `Request::allocate_then`.
    pub(crate) fn new(
        binding: BindingRef,
        pointer: usize,
        nbytes: usize,
        kind: UsmKind,
        terms: Terms,
        owner: Owner,
    ) -> Self {
        Self {
            address: pointer,
            nbytes,
            kind,
            terms,
            binding,
            export_state: match owner {
                Owner::Allocation(_) => ExportState::default(),
                _ => ExportState::shared(),
            },
            owner: OwnerSlot::new(Some(owner)),
            pins: Pins::default(),
            views: Views::default(),
        }
    }

    /// Another object for the same memory.
    ///
    /// # Errors
    /// `ValueError` when it is closed.
    pub(crate) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        let _pin = self.pins.pin()?;
        let owner = self.share_owner(py);
        // Neither object records users that got the memory from the other one.
        self.export_state.mark_shared();
        Ok(Self {
            address: self.address,
            nbytes: self.nbytes,
            kind: self.kind,
            terms: self.terms,
            binding: BindingRef::new(&self.binding),
            owner: OwnerSlot::new(owner),
            pins: Pins::default(),
            views: Views::default(),
            export_state: ExportState::shared(),
        })
    }

    /// Another owner of the memory; `None` when it is closed.
    pub(crate) fn share_owner(&self, py: Python<'_>) -> Option<Owner> {
        let mut owner = self.owner.lock();
        let (own, shared) = owner.take()?.share(py);
        *owner = Some(own);
        Some(shared)
    }

    pub(crate) fn context_device(&self) -> &Arc<ContextDevice> {
        self.binding.context_device()
    }

    pub(crate) fn check_writable(&self) -> PyResult<()> {
        if self.terms.is_read_only() {
            return Err(PyValueError::new_err(
                "the memory is read-only: its exporter marked it so",
            ));
        }
        Ok(())
    }

    /// Checks that so many bytes can be written.
    pub(crate) fn check_takes(&self, size: usize) -> PyResult<()> {
        self.check_writable()?;
        if size > self.nbytes {
            return Err(PyValueError::new_err(format!(
                "source of {size} bytes is too large for USM memory of {} bytes",
                self.nbytes
            )));
        }
        Ok(())
    }

    pub(crate) fn check_holds(&self, destination: &HostBuffer) -> PyResult<()> {
        if destination.size() < self.nbytes {
            return Err(PyValueError::new_err(format!(
                "destination of {} bytes is too small for USM memory of {} bytes",
                destination.size(),
                self.nbytes
            )));
        }
        Ok(())
    }

    /// The kind that the context of a SYCL object reports; `None` when the memory is unknown in that context.
    pub(crate) fn kind_in(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<UsmKind>> {
        let Some(syclobj) = syclobj else {
            return Ok(Some(self.kind));
        };
        let resolved = ResolvedSyclObject::read(syclobj, "syclobj")?;
        resolved.accept(syclobj.py());
        // The context is compared with the memory's own, as some drivers look pointers up in all their contexts.
        let is_own = self
            .context_device()
            .sycl()
            .is_ok_and(|context| *context == resolved.context);
        Ok(is_own.then_some(self.kind))
    }

    /// Records that another object uses the memory by its address.
    ///
    /// # Errors
    /// [`Closed`] when it is closed.
    pub(crate) fn note_import(&self) -> Result<(), Closed> {
        let _pin = self.pins.pin()?;
        self.export_state.mark_exported();
        Ok(())
    }

    /// The kind of the memory in the process that exported it, for a mapping.
    pub(crate) fn exported_kind(&self) -> Option<UsmKind> {
        match &*self.owner.lock() {
            Some(Owner::Mapping(mapping)) => Some(mapping.exported_kind()),
            _ => None,
        }
    }

    /// The end of the message that the host cannot access the memory: the reason, for a mapping of memory of another kind.
    pub(crate) fn host_access_hint(&self) -> String {
        match self.exported_kind() {
            Some(kind) if kind.is_host_accessible() => format!(
                "; its owner has it as USM-{kind} memory, which the driver opens as USM-{} memory in other processes",
                self.kind
            ),
            _ => String::new(),
        }
    }
}
