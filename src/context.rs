//! A context: what allocations, queues and events belong to.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;
use once_cell::race::OnceBox;

use crate::device::Driver;
use crate::error::Result;
use crate::process::Own;

/// A Level Zero context, either this crate's own or one that somebody else made (a SYCL runtime, for instance).
///
/// Cheap to clone. The handle is destroyed after the last clone, allocation, queue and event that use it is gone; a
/// foreign handle is not destroyed, its owner is kept alive instead. A fork's child uses what it inherits, and destroys
/// nothing of it.
///
/// Source: Level Zero specification, "Core programming guide", Contexts.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Own<Inner>>,
    attachment: Attachment,
}

/// What a layer above keeps with a context, its pools for instance. What belongs to such a pool has the context too, but
/// must not keep the pool alive.
#[derive(Clone)]
enum Attachment {
    Owned(Arc<Slot>),
    Seen(Weak<Slot>),
}

/// Made without a lock, which a fork's child might inherit locked.
type Slot = OnceBox<Box<dyn Any + Send + Sync>>;

struct Inner {
    driver: Driver,
    handle: sys::ze_context_handle_t,
    /// Who owns a foreign handle; `None` when it is ours to destroy.
    owner: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: the specification makes contexts usable from any thread; the handle is destroyed once, by the last owner.
unsafe impl Send for Inner {}
// SAFETY: the calls that take a context handle may run at the same time.
unsafe impl Sync for Inner {}

impl Context {
    /// Makes a context over all devices of `driver`.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's answer.
    pub fn new(driver: &Driver) -> Result<Self> {
        let description = sys::ze_context_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the driver handle lives as long as the process; description and handle outlive the call.
        unsafe {
            call!(
                driver.library(),
                zeContextCreate(driver.handle(), &description, &mut handle)
            )
        }?;
        Ok(Self::of(Inner {
            driver: driver.clone(),
            handle,
            owner: None,
        }))
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(Own::new(inner)),
            attachment: Attachment::Owned(Arc::default()),
        }
    }

    /// Uses a context that somebody else made, and keeps `owner` until nothing here needs it any more.
    ///
    /// # Safety
    /// `handle` must be a context of `driver` and stay valid for as long as `owner` lives.
    pub unsafe fn foreign(
        driver: &Driver,
        handle: sys::ze_context_handle_t,
        owner: impl Any + Send + Sync,
    ) -> Self {
        Self::of(Inner {
            driver: driver.clone(),
            handle,
            owner: Some(Box::new(owner)),
        })
    }

    /// Hands what the layer above keeps with the context to `then`, with a maker of clones that do not keep it alive. It
    /// is made when first needed, and shared by all clones; `None` once the last clone that keeps it alive is gone. One
    /// layer may attach one type.
    pub(crate) fn with_attachment<A: Any + Send + Sync + Default, T>(
        &self,
        then: impl FnOnce(&A, &dyn Fn() -> Self) -> T,
    ) -> Option<T> {
        let upgraded;
        let (slot, weak) = match &self.attachment {
            Attachment::Owned(slot) => (slot, Arc::downgrade(slot)),
            Attachment::Seen(weak) => {
                upgraded = weak.upgrade()?;
                (&upgraded, Weak::clone(weak))
            }
        };
        let attached = slot.get_or_init(|| Box::new(Box::<A>::default()));
        let unattached = || Self {
            inner: Arc::clone(&self.inner),
            attachment: Attachment::Seen(Weak::clone(&weak)),
        };
        Some(then(attached.downcast_ref()?, &unattached))
    }

    /// The driver it belongs to.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.inner.driver
    }

    /// The library that the context was made through.
    #[must_use]
    pub fn library(&self) -> &'static sys::Library {
        self.inner.driver.library()
    }

    /// The raw handle, for calls that this crate does not wrap.
    #[must_use]
    pub fn handle(&self) -> sys::ze_context_handle_t {
        self.inner.handle
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owner.is_none() {
            // A failure here can only be told to nobody; the handle is gone either way.
            // SAFETY: the handle is ours, and everything that used it held a clone of this context.
            let _ = unsafe { call!(self.driver.library(), zeContextDestroy(self.handle)) };
        }
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.inner.handle == other.inner.handle
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("handle", &self.inner.handle)
            .field("foreign", &self.inner.owner.is_some())
            .finish()
    }
}
