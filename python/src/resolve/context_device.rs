//! A context and a device of it, with their queue for copies and their SYCL context.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use once_cell::race::OnceBox;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::barriers::Barriers;
use crate::dpctl::{self, Dpctl, SyclQueue};
use crate::errors::{IntoException, OrRaise};
use zeusm::pool::Pool;
use zeusm::sycl::{ContextRef, DeviceRef, EventRef, RawRef};
use zeusm::usm::{LevelZeroProvider, PointerAttributes, UsmKind};
use zeusm::{Context, Device, Driver, Error, Queue, Runtime, sys};
use zeusm_process::{Mutex, Owned};

/// A context and a device of it, shared by all their memory.
pub(crate) struct ContextDevice {
    context: Context,
    device: Device,
    /// Whether it is the first device of the SYCL context, to which host memory is assigned.
    is_first: bool,
    /// The SYCL context that `context` belongs to, or the reason why there is none.
    sycl: Result<ContextRef, String>,
    /// Made on first use.
    queue: OnceBox<Queue>,
    /// The same for frees in the order of SYCL queues, which must not delay copies.
    frees: OnceBox<Queue>,
    /// The device's DLPack number, queried on first use.
    pub(super) root: OnceBox<RootDevice>,
    /// The queue beside its own that may have work on host memory, once there is one; the same for all entries of a context.
    host_queue: Arc<OnceBox<&'static SyclQueue>>,
    /// dpctl's cached queue, once it was needed.
    cached_queue: OnceBox<SyclQueue>,
    /// Whether the cached queue may have work on memory whose own queue is another one.
    is_queue_shared: AtomicBool,
    /// The barriers for SYCL events of zeusm's operations.
    barriers: Owned<Barriers>,
}

/// A root device by its DLPack number.
#[derive(Clone, Copy)]
pub(crate) struct RootDevice {
    pub(crate) number: i32,
    /// Whether the context is the device's default one, the only one that DLPack supports.
    pub(crate) is_default_context: bool,
}

/// The `ContextDevice`s of SYCL contexts, while memory refers to them. Each SYCL context has its own, as SYCL runtimes of
/// 2026 may use one Level Zero context for all of them (`zeDriverGetDefaultContext`).
static KNOWN: Mutex<Vec<Weak<ContextDevice>>> = Mutex::new(Vec::new());

impl ContextDevice {
    /// Resolves a SYCL context with `device`, by default its first device.
    pub(crate) fn in_sycl(context: &ContextRef, device: Option<&DeviceRef>) -> PyResult<Arc<Self>> {
        let device = match device {
            Some(device) => device.native().or_raise()?,
            None => first_device(context)?,
        };
        Self::find(context, device)
    }

    /// Resolves a SYCL context with the device of the memory at `pointer`; returns the attributes of the pointer as well.
    ///
    /// # Errors
    /// [`Error::UnknownPointer`] when it is not USM of that context.
    pub(crate) fn of_pointer(
        context: &ContextRef,
        pointer: usize,
    ) -> PyResult<(Arc<Self>, PointerAttributes)> {
        // Any existing entry for the context can be queried; making a new one takes longer than the query.
        let known = Self::known(|known| known.is_in(context));
        let attributes = match &known {
            Some(known) => known.context.pointer_attributes(pointer),
            None => foreign(context)?.pointer_attributes(pointer),
        }
        .or_raise()?;
        let has_device = |known: &Arc<Self>| match &attributes.device {
            Some(device) => *device == known.device,
            None => known.is_first,
        };
        if let Some(known) = known.filter(has_device) {
            return Ok((known, attributes));
        }
        let device = match &attributes.device {
            Some(device) => {
                check_is_of(context, device, pointer)?;
                device.handle()
            }
            None => first_device(context)?,
        };
        Ok((Self::find(context, device)?, attributes))
    }

    /// The shared reference to the SYCL context that `raw` points to, if there is an entry for it.
    ///
    /// # Safety
    /// `raw` must point to a SYCL context of dpctl's SYCL runtime.
    pub(super) unsafe fn known_context(raw: RawRef) -> Option<ContextRef> {
        let is_same = |context: &ContextRef| {
            // SAFETY: the caller guarantees the validity of the reference.
            unsafe { context.is_same(raw) }
        };
        let known = Self::known(|known| known.sycl.as_ref().is_ok_and(is_same))?;
        known.sycl.as_ref().ok().cloned()
    }

    fn known(matches: impl Fn(&Self) -> bool) -> Option<Arc<Self>> {
        Self::alive().into_iter().find(|known| matches(known))
    }

    /// All entries. They are dropped without the lock, as each may be the last owner, whose drop waits for the queue.
    fn alive() -> Vec<Arc<Self>> {
        KNOWN.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Adds an entry, unless another thread has added an equal one.
    fn enter(mut new: Self) -> Arc<Self> {
        // Declared before the lock guard, so that it is dropped after the guard.
        let mut alive = Vec::new();
        let mut known = KNOWN.lock();
        alive.extend(known.iter().filter_map(Weak::upgrade));
        let is_same = |known: &&Arc<Self>| {
            known.device == new.device && new.sycl.as_ref().is_ok_and(|sycl| known.is_in(sycl))
        };
        if let Some(known) = alive.iter().find(is_same) {
            return Arc::clone(known);
        }
        if let Some(known) = alive.iter().find(|known| known.shares_context(&new)) {
            new.host_queue = Arc::clone(&known.host_queue);
        }
        let new = Arc::new(new);
        known.retain(|known| known.strong_count() > 0);
        known.push(Arc::downgrade(&new));
        new
    }

    /// Whether both are in the same SYCL context or, if neither is in one, in the same Level Zero context.
    pub(crate) fn shares_context(&self, other: &Self) -> bool {
        match &other.sycl {
            Ok(context) => self.is_in(context),
            Err(_) => self.sycl.is_err() && self.context == other.context,
        }
    }

    /// Whether operations on this device's queue can access memory of `kind` on the device of `other`.
    pub(crate) fn can_access(&self, other: &Self, kind: UsmKind) -> bool {
        let is_on_accessible_device = || {
            // Without an answer the memory is copied through the host, which always works.
            self.device == other.device || self.device.can_access(&other.device).unwrap_or(false)
        };
        self.context == other.context && (kind == UsmKind::Host || is_on_accessible_device())
    }

    fn is_in(&self, context: &ContextRef) -> bool {
        self.sycl.as_ref().is_ok_and(|known| known == context)
    }

    /// A context of zeusm's own with the default device, without a SYCL context for the given reason.
    pub(super) fn without_sycl(reason: String) -> Result<Arc<Self>, Error> {
        let device = Runtime::get()?.default_device()?;
        let context = Context::new(device.driver())?;
        Ok(Arc::new(Self::new(context, device, false, Err(reason))))
    }

    fn new(
        context: Context,
        device: Device,
        is_first: bool,
        sycl: Result<ContextRef, String>,
    ) -> Self {
        Self {
            context,
            device,
            is_first,
            sycl,
            queue: OnceBox::new(),
            frees: OnceBox::new(),
            root: OnceBox::new(),
            host_queue: Arc::default(),
            cached_queue: OnceBox::new(),
            is_queue_shared: AtomicBool::new(false),
            barriers: Owned::new(Barriers::new()),
        }
    }

    fn find(sycl: &ContextRef, device: sys::ze_device_handle_t) -> PyResult<Arc<Self>> {
        let known =
            Self::known(|known| ptr::eq(known.device.handle(), device) && known.is_in(sycl));
        if let Some(known) = known {
            return Ok(known);
        }
        let context = foreign(sycl)?;
        // SAFETY: the SYCL runtime gave the handle for a device of this context, whose driver this is.
        let device = unsafe { context.driver().device(device) }.or_raise()?;
        let is_first = ptr::eq(first_device(sycl)?, device.handle());
        let new = Self::new(context, device, is_first, Ok(sycl.clone()));
        Ok(Self::enter(new))
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The SYCL context, or an error with the reason why there is none.
    pub(crate) fn sycl(&self) -> PyResult<&ContextRef> {
        self.sycl.as_ref().map_err(|reason| {
            PyRuntimeError::new_err(format!(
                "this memory is in a Level Zero context of zeusm's own, of which no SYCL object can be made: {reason}"
            ))
        })
    }

    /// A new `dpctl.SyclContext`.
    pub(crate) fn new_sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // First, as the reason why there is no SYCL context is more helpful than the failed import of dpctl.
        let capsule = dpctl::new_capsule(py, self.sycl()?)?;
        Dpctl::get(py)?.context.bind(py).call1((capsule,))
    }

    /// The `dpctl.SyclDevice`.
    pub(crate) fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.sycl_pair(py)?.1)
    }

    /// A new `dpctl.SyclContext`, and the `dpctl.SyclDevice` in it.
    fn sycl_pair<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let context = self.new_sycl_context(py)?;
        for device in context.call_method0("get_devices")?.try_iter()? {
            let device = device?;
            if dpctl::device_reference(&device)?.native().or_raise()? == self.device.handle() {
                return Ok((context, device));
            }
        }
        // The device is a sub-device, and the context has its parent only. The parent would be the wrong device.
        Err(PyRuntimeError::new_err(format!(
            "{} is not among the devices of its SYCL context",
            self.device.name()
        )))
    }

    /// dpctl's cached queue of the SYCL context and the device, which dpctl and dpnp use for arrays of theirs.
    ///
    /// # Errors
    /// `RuntimeError` when there is no SYCL context.
    pub(super) fn cached_queue(&self, py: Python<'_>) -> PyResult<&SyclQueue> {
        let cached = self.cached_queue.get_or_try_init(|| {
            let pair = self.sycl_pair(py)?.into_pyobject(py)?;
            let queue = Dpctl::get(py)?.cached_queue(&pair)?;
            PyResult::Ok(Box::new(SyclQueue::new(&queue)?))
        })?;
        Ok(cached)
    }

    /// The queue that work on host memory of the context is submitted to by packages that derive the queue from the pointer.
    /// `None` until such a package can have host memory of the context.
    #[inline]
    pub(crate) fn host_queue(&self) -> Option<&'static SyclQueue> {
        self.host_queue.get().copied()
    }

    pub(super) fn set_host_queue(&self, queue: &'static SyclQueue) {
        // Two threads set the same.
        let _ = self.host_queue.set(Box::new(queue));
    }

    /// dpctl's cached queue, if it may have work on memory of other queues.
    #[inline]
    pub(crate) fn shared_queue(&self) -> Option<&SyclQueue> {
        if self.is_queue_shared.load(Ordering::Acquire) {
            self.cached_queue.get()
        } else {
            None
        }
    }

    /// To be called before a package that takes dpctl's cached queue for the memory's can have memory of the queue `own`. From now
    /// on, accesses to memory of the context and device wait for the cached queue, too.
    pub(crate) fn share_queue(
        &self,
        py: Python<'_>,
        own: Option<&SyclQueue>,
    ) -> PyResult<&SyclQueue> {
        let cached = self.cached_queue(py)?;
        if own.is_none_or(|own| own.reference() != cached.reference()) {
            self.is_queue_shared.store(true, Ordering::Release);
        }
        Ok(cached)
    }

    /// A new `dpctl.SyclQueue`.
    pub(crate) fn new_sycl_queue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pair = self.sycl_pair(py)?;
        Dpctl::get(py)?.queue.bind(py).call1(pair)
    }

    /// As [`Barriers::after`], with a barrier in a queue of this context and device.
    pub(crate) fn barrier_after(
        &self,
        py: Python<'_>,
        event: EventRef,
    ) -> PyResult<Option<EventRef>> {
        self.barriers.after(py, event, || {
            let queue = self.new_sycl_queue(py).ok();
            queue
                .map(|queue| dpctl::queue_reference(&queue))
                .transpose()
        })
    }

    /// The default pool for allocations of `kind`.
    pub(crate) fn pool(&self, kind: UsmKind) -> PyResult<Pool<LevelZeroProvider>> {
        // `self` owns the context, so the context's pools are alive.
        self.context
            .pool(&self.device, kind)
            .ok_or_else(|| PyRuntimeError::new_err("the context's pools are gone"))
    }

    /// The queue for copies and fills.
    pub(crate) fn queue(&self) -> Result<&Queue, Error> {
        // If two threads make one concurrently, one of the two is dropped.
        self.queue
            .get_or_try_init(|| Queue::new(&self.context, &self.device).map(Box::new))
    }

    /// The queue for frees in the order of SYCL queues.
    pub(crate) fn frees(&self) -> Result<&Queue, Error> {
        self.frees
            .get_or_try_init(|| Queue::new(&self.context, &self.device).map(Box::new))
    }

    /// Whether no operation is in flight on that queue.
    pub(crate) fn is_settled(&self) -> bool {
        self.queue.get().is_none_or(|queue| queue.is_idle())
    }
}

/// The Level Zero context of a SYCL context, which it keeps alive.
fn foreign(sycl: &ContextRef) -> PyResult<Context> {
    let native = sycl.native().or_raise()?;
    let driver = driver_of(sycl)?;
    // SAFETY: `native` is the handle of the SYCL context, which is alive as long as the reference that is passed as its
    // owner. It belongs to this driver of this library, which lists the context's device.
    Ok(unsafe { Context::foreign(driver, native, sycl.clone()) })
}

/// The driver of a SYCL context: the one that lists its device.
///
/// # Errors
/// [`Error::OtherRuntime`] when the SYCL runtime uses another Level Zero library.
pub(super) fn driver_of(sycl: &ContextRef) -> PyResult<&'static Driver> {
    Runtime::get()
        .or_raise()?
        .driver_of(first_device(sycl)?)
        .or_raise()
}

/// Refuses memory on a device that the context does not have, as some drivers also look up pointers of other contexts.
fn check_is_of(context: &ContextRef, device: &Device, pointer: usize) -> PyResult<()> {
    for known in context.devices().or_raise()? {
        // SAFETY: the SYCL runtime gave the handle for a device of the context, whose driver this is.
        let known = unsafe { device.driver().device(known.native().or_raise()?) }.or_raise()?;
        // A driver may report the sub-device for memory of a device, and vice versa.
        if known.contains(device).or_raise()? || device.contains(&known).or_raise()? {
            return Ok(());
        }
    }
    Err(Error::UnknownPointer(pointer).into_exception())
}

fn first_device(context: &ContextRef) -> PyResult<sys::ze_device_handle_t> {
    match context.devices().or_raise()?.first() {
        Some(device) => device.native().or_raise(),
        None => Err(PyRuntimeError::new_err("the SYCL context has no device")),
    }
}
