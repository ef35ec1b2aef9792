//! Contexts, to which allocations, queues and events belong.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;
use once_cell::race::OnceBox;
use zeusm_process::Owned;

use crate::device::{Device, Driver};
use crate::error::{Error, Result};

/// A Level Zero context: either this crate's own, or a foreign one (of a SYCL runtime, for instance).
///
/// Cheap to clone. The handle is destroyed after its last clone, allocation, queue and event are dropped; a foreign handle is
/// not destroyed, and its owner is kept alive instead. A fork's child uses inherited contexts, and does not destroy them.
///
/// Source: Level Zero specification, "Core programming guide", Contexts.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Owned<Inner>>,
    attachment: Attachment,
}

/// State that a layer above attaches to a context, its pools for instance. A pool's provider has a clone of the context with
/// a weak reference to the attachment, as strong references would form a cycle.
#[derive(Clone)]
enum Attachment {
    Strong(Arc<Slot>),
    Weak(Weak<Slot>),
}

/// Initialised without a lock, which a fork's child could inherit locked.
type Slot = OnceBox<Box<dyn Any + Send + Sync>>;

struct Inner {
    driver: Driver,
    handle: sys::ze_context_handle_t,
    /// The owner of a foreign handle; `None` when this context destroys the handle.
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
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn new(driver: &Driver) -> Result<Self> {
        let description = sys::structure::<sys::ze_context_desc_t>();
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
            inner: Arc::new(Owned::new(inner)),
            attachment: Attachment::Strong(Arc::default()),
        }
    }

    /// Wraps a foreign context, and keeps `owner` alive until its last use.
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

    /// Passes the attachment to `then`, with a function that makes clones of the context without a strong reference to it.
    /// The attachment is made on first use, and shared by all clones; `None` once all clones with a strong reference are
    /// dropped. There can be one type of attachment only.
    pub(crate) fn with_attachment<A: Any + Send + Sync + Default, T>(
        &self,
        then: impl FnOnce(&A, &dyn Fn() -> Self) -> T,
    ) -> Option<T> {
        let upgraded;
        let slot = match &self.attachment {
            Attachment::Strong(slot) => slot,
            Attachment::Weak(weak) => {
                upgraded = weak.upgrade()?;
                &upgraded
            }
        };
        let attached = slot.get_or_init(|| Box::new(Box::<A>::default()));
        let weak_clone = || Self {
            inner: Arc::clone(&self.inner),
            attachment: Attachment::Weak(Arc::downgrade(slot)),
        };
        Some(then(attached.downcast_ref()?, &weak_clone))
    }

    /// The driver it belongs to.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.inner.driver
    }

    /// Checks that a device is of this context's driver: drivers do not check handles of each other.
    ///
    /// # Errors
    /// [`Error::OtherDriver`].
    pub(crate) fn check_driver_of(&self, device: &Device) -> Result<()> {
        if self.driver().handle() == device.driver().handle() {
            return Ok(());
        }
        Err(Error::OtherDriver(device.to_string()))
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
            // A failure is ignored, as a drop cannot report it.
            // SAFETY: this context owns the handle, and everything that used it had a clone of this context.
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
