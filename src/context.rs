//! A context: what allocations, queues and events belong to.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;

use crate::Result;
use crate::device::Device;
use crate::driver::Driver;
use crate::error::Error;
use crate::pool::{self, DefaultPools, Found, LevelZero, Pool};
use crate::process::Own;
use crate::usm::{PointerAttributes, UsmKind, origin};

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
    pools: Pools,
}

/// The context's pools. What belongs to a pool has the context too, but must not keep the pools alive.
#[derive(Clone)]
enum Pools {
    Kept(Arc<DefaultPools>),
    Known(Weak<DefaultPools>),
}

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
    /// [`Error::Call`] with the driver's answer.
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
            pools: Pools::Kept(Arc::default()),
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

    /// What is known of the allocation that `pointer` points into: Level Zero's word, or where a pool has divided
    /// Level Zero's memory, the pool's. Some drivers answer for pointers of all their contexts; of zeusm's own
    /// allocations it is known which context they are of, of others it is not.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of this context.
    pub fn pointer_attributes(&self, pointer: usize) -> Result<PointerAttributes> {
        let whole = self.driver_attributes(pointer)?;
        match pool::find(pointer) {
            Found::Elsewhere => Ok(whole),
            Found::Used(range) if range.contains(&pointer) => Ok(PointerAttributes {
                base: range.start,
                size: range.len(),
                ..whole
            }),
            Found::Used(_) | Found::Unused => Err(Error::UnknownPointer { pointer }),
        }
    }

    /// What Level Zero knows of its allocation that `pointer` points into, which a pool may have divided.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of this context.
    pub(crate) fn driver_attributes(&self, pointer: usize) -> Result<PointerAttributes> {
        if pointer == 0 || origin::is_elsewhere(pointer, self.handle()) {
            return Err(Error::UnknownPointer { pointer });
        }
        let mut properties = sys::ze_memory_allocation_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
            ..Default::default()
        };
        let mut device = ptr::null_mut();
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not follow it.
        unsafe {
            call!(
                self.library(),
                zeMemGetAllocProperties(
                    self.handle(),
                    ptr::without_provenance(pointer),
                    &mut properties,
                    &mut device
                )
            )
        }?;
        let kind =
            UsmKind::from_level_zero(properties.type_).ok_or(Error::UnknownPointer { pointer })?;
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the context is alive; Level Zero looks the pointer up and does not follow it.
        unsafe {
            call!(
                self.library(),
                zeMemGetAddressRange(
                    self.handle(),
                    ptr::without_provenance(pointer),
                    &mut base,
                    &mut size
                )
            )
        }?;
        Ok(PointerAttributes {
            kind,
            base: base.addr(),
            size,
            id: properties.id,
            device: if device.is_null() {
                None
            } else {
                // SAFETY: the driver gave the handle.
                Some(unsafe { self.driver().device(device) }?)
            },
        })
    }

    /// Hands the context's pool for `device` and `kind` to `then`; `None` when the pools went with the context's
    /// last owner, and only allocations have it any more.
    pub(crate) fn with_pool<T>(
        &self,
        device: &Device,
        kind: UsmKind,
        then: impl FnOnce(&Pool<LevelZero>) -> T,
    ) -> Option<T> {
        let known = |pools| Self {
            inner: Arc::clone(&self.inner),
            pools: Pools::Known(pools),
        };
        match &self.pools {
            Pools::Kept(pools) => {
                let context = || known(Arc::downgrade(pools));
                Some(then(pools.get(context, device, kind)))
            }
            Pools::Known(weak) => {
                let context = || known(Weak::clone(weak));
                Some(then(weak.upgrade()?.get(context, device, kind)))
            }
        }
    }

    /// The pool that ordinary allocations of `kind` for `device` come from.
    #[must_use]
    pub fn pool(&self, device: &Device, kind: UsmKind) -> Option<Pool<LevelZero>> {
        self.with_pool(device, kind, Pool::clone)
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
