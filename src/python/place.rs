//! Where memory lives: a context, a device, the queue that copies there, and the SYCL context they come from.

use std::ptr;
use std::sync::{Arc, Weak};

use once_cell::race::OnceBox;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::array::Root;
use crate::pool::Pool;
use crate::process::Mutex;
use crate::sycl::{ContextRef, DeviceRef, RawRef};

use crate::usm::{LevelZero, PointerAttributes, UsmKind};
use crate::{Context, Device, Driver, Error, Queue, Runtime, sys};

/// A context and a device of it, shared by all memory there.
pub(super) struct Place {
    context: Context,
    device: Device,
    /// Whether it is the first device of the SYCL context, where memory of the host is.
    is_first: bool,
    /// The SYCL context that `context` belongs to, or why there is none.
    sycl: Result<ContextRef, String>,
    /// Made when first needed.
    queue: OnceBox<Queue>,
    /// What DLPack calls the device; found when first needed.
    pub(super) root: PyOnceLock<Root>,
}

/// The places in SYCL contexts that some memory lives at. Each SYCL context has its own, as SYCL runtimes of 2026 may have
/// one context of Level Zero for all of them (`zeDriverGetDefaultContext`).
static PLACES: Mutex<Vec<Weak<Place>>> = Mutex::new(Vec::new());

impl Place {
    /// The place of `device` in a SYCL context; of its first device if none is named.
    pub(super) fn in_sycl(context: &ContextRef, device: Option<&DeviceRef>) -> PyResult<Arc<Self>> {
        let device = match device {
            Some(device) => device.native()?,
            None => first_device(context)?,
        };
        Self::find(context, context.native()?, device)
    }

    /// The place in a SYCL context that memory at `pointer` belongs to, and what Level Zero says of it.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of that context.
    pub(super) fn of_pointer(
        context: &ContextRef,
        pointer: usize,
    ) -> PyResult<(Arc<Self>, PointerAttributes)> {
        // Any place of the context can ask; a new handle for it takes longer than the question.
        let known = Self::known(|place| place.is_in(context));
        let attributes = match &known {
            Some(place) => place.context.pointer_attributes(pointer),
            None => foreign(context, context.native()?)?.pointer_attributes(pointer),
        }?;
        let is_there = |place: &Arc<Self>| match &attributes.device {
            Some(device) => *device == place.device,
            None => place.is_first,
        };
        if let Some(place) = known.filter(is_there) {
            return Ok((place, attributes));
        }
        let device = match &attributes.device {
            Some(device) => {
                check_is_of(context, device, pointer)?;
                device.handle()
            }
            None => first_device(context)?,
        };
        Ok((Self::find(context, context.native()?, device)?, attributes))
    }

    /// The SYCL context that a reference means, if memory lives there.
    ///
    /// # Safety
    /// `raw` must point to a SYCL context of dpctl's SYCL runtime.
    pub(super) unsafe fn known_context(raw: RawRef) -> Option<ContextRef> {
        let is_it = |context: &ContextRef| {
            // SAFETY: the caller vouches for the reference.
            unsafe { context.is_same(raw) }
        };
        let place = Self::known(|place| place.sycl.as_ref().is_ok_and(is_it))?;
        place.sycl.as_ref().ok().cloned()
    }

    fn known(is_it: impl Fn(&Self) -> bool) -> Option<Arc<Self>> {
        Self::alive().into_iter().find(|place| is_it(place))
    }

    /// All places, for dropping without the lock: each may be the last owner, and the end of a place waits for its queue.
    fn alive() -> Vec<Arc<Self>> {
        PLACES.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Enters a new place, unless another thread was quicker.
    fn enter(place: Arc<Self>) -> Arc<Self> {
        // Before the lock, so that it is dropped after it.
        let mut alive = Vec::new();
        let mut places = PLACES.lock();
        alive.extend(places.iter().filter_map(Weak::upgrade));
        let is_same = |known: &&Arc<Self>| {
            known.device == place.device && place.sycl.as_ref().is_ok_and(|sycl| known.is_in(sycl))
        };
        if let Some(known) = alive.iter().find(is_same) {
            return Arc::clone(known);
        }
        places.retain(|place| place.strong_count() > 0);
        places.push(Arc::downgrade(&place));
        place
    }

    /// Whether memory of the one place is memory of the other's context for SYCL, too.
    pub(super) fn shares_context(&self, other: &Self) -> bool {
        match &other.sycl {
            Ok(context) => self.is_in(context),
            Err(_) => self.sycl.is_err() && self.context == other.context,
        }
    }

    fn is_in(&self, context: &ContextRef) -> bool {
        self.sycl.as_ref().is_ok_and(|known| known == context)
    }

    /// Why memory cannot live in a SYCL context, if it cannot.
    pub(super) fn obstacle(context: &ContextRef) -> Option<PyErr> {
        driver_of(context).err()
    }

    /// A place of our own, in no SYCL context, and why.
    pub(super) fn without_sycl(why: String) -> Result<Arc<Self>, Error> {
        let device = Runtime::get()?.default_device()?;
        Ok(Arc::new(Self {
            context: Context::new(device.driver())?,
            device,
            is_first: false,
            sycl: Err(why),
            queue: OnceBox::new(),
            root: PyOnceLock::new(),
        }))
    }

    fn find(
        sycl: &ContextRef,
        context: sys::ze_context_handle_t,
        device: sys::ze_device_handle_t,
    ) -> PyResult<Arc<Self>> {
        let known =
            Self::known(|place| ptr::eq(place.device.handle(), device) && place.is_in(sycl));
        if let Some(place) = known {
            return Ok(place);
        }
        let context = foreign(sycl, context)?;
        // SAFETY: the SYCL runtime gave the handle for a device of this context, whose driver this is.
        let device = unsafe { context.driver().device(device) }?;
        let place = Arc::new(Self {
            is_first: ptr::eq(first_device(sycl)?, device.handle()),
            context,
            device,
            sycl: Ok(sycl.clone()),
            queue: OnceBox::new(),
            root: PyOnceLock::new(),
        });
        Ok(Self::enter(place))
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The SYCL context, or an error that says why there is none.
    pub(super) fn sycl(&self) -> PyResult<&ContextRef> {
        self.sycl.as_ref().map_err(|why| {
            PyRuntimeError::new_err(format!(
                "this memory is in a Level Zero context of zeusm's own, of which no SYCL object can be made: {why}"
            ))
        })
    }

    /// The pool that ordinary allocations of `kind` here come from.
    pub(super) fn pool(&self, kind: UsmKind) -> PyResult<Pool<LevelZero>> {
        // A place is an owner of its context, so the pools are there.
        self.context
            .pool(&self.device, kind)
            .ok_or_else(|| PyRuntimeError::new_err("the context's pools are gone"))
    }

    /// The queue that copies and fills here.
    pub(super) fn queue(&self) -> Result<&Queue, Error> {
        // Of two that are made at once, one is dropped.
        self.queue
            .get_or_try_init(|| Queue::new(&self.context, &self.device).map(Box::new))
    }

    /// Whether nothing is under way on that queue.
    pub(super) fn is_settled(&self) -> bool {
        self.queue.get().is_none_or(|queue| queue.is_settled())
    }
}

/// The Level Zero context of a SYCL context, which it keeps alive.
fn foreign(sycl: &ContextRef, native: sys::ze_context_handle_t) -> PyResult<Context> {
    let driver = driver_of(sycl)?;
    // SAFETY: `native` is the handle of the SYCL context, which lives as long as the reference that goes along. It is of
    // this driver of this library, which lists the context's device.
    Ok(unsafe { Context::foreign(driver, native, sycl.clone()) })
}

/// The driver that a SYCL context is of: the one that lists its device.
///
/// # Errors
/// [`Error::OtherRuntime`] when the SYCL runtime uses another Level Zero library.
fn driver_of(sycl: &ContextRef) -> PyResult<&'static Driver> {
    Ok(Runtime::get()?.driver_of(first_device(sycl)?)?)
}

/// Refuses memory on a device that the context does not have, which some drivers tell of, too.
fn check_is_of(context: &ContextRef, device: &Device, pointer: usize) -> PyResult<()> {
    for known in context.devices()? {
        let (known, handle) = (known.native()?, device.handle());
        // Memory of a whole device may be told to be on a part of it, and the other way round.
        let driver = device.driver();
        if driver.is_part(known, handle)? || driver.is_part(handle, known)? {
            return Ok(());
        }
    }
    Err(Error::UnknownPointer { pointer }.into())
}

fn first_device(context: &ContextRef) -> PyResult<sys::ze_device_handle_t> {
    match context.devices()?.first() {
        Some(device) => Ok(device.native()?),
        None => Err(PyRuntimeError::new_err("the SYCL context has no device")),
    }
}
