//! SYCL events.

use std::time::{Duration, Instant};

use level_zero_sys as sys;

use super::classes::{ContextRef, EventRef};
use super::error::Error;
use super::poll::Poll;
use crate::device::Device;
use crate::runtime::Runtime;

/// `sycl::backend::ext_oneapi_level_zero`.
const LEVEL_ZERO: std::ffi::c_char = 2;

/// The major versions of libsycl with a known layout of `sycl::event` and a known `make_event`: SYCL 2025 and 2026.
const SUPPORTED_VERSIONS: [u32; 2] = [8, 9];
/// The version of SYCL 2024, whose `make_event` wraps native events and cannot create one.
const WITHOUT_NEW_EVENTS: u32 = 7;

/// Bytes for a `sycl::event`, which is one `std::shared_ptr` in these versions, with some reserve.
const EVENT_SIZE: usize = 64;

/// `DPCTL_SUBMITTED`, `DPCTL_RUNNING` and `DPCTL_COMPLETE` of `DPCTLSyclEventStatusType`.
const SUBMITTED: u32 = 1;
const RUNNING: u32 = 2;
const COMPLETE: u32 = 3;

/// The interval between two queries of the device's status during a wait.
const LOSS_INTERVAL: Duration = Duration::from_millis(100);

/// The time after the loss of a device in which an event may be waited for that may be of another one: SYCL does not tell its
/// device.
const OTHER_DEVICE: Duration = Duration::from_secs(5);

impl EventRef {
    /// Makes a SYCL event in a Level Zero context, with its native event. The event is complete until the native event is
    /// reset, and again when that is signalled. SYCL owns the native event, which is valid as long as the reference.
    ///
    /// `None` with SYCL 2024, which cannot create a native event.
    ///
    /// # Errors
    /// [`Error::Backend`], [`Error::Failed`], [`Error::Thrown`]; [`Error::Unavailable`] with an unsupported version of SYCL.
    pub fn create(context: &ContextRef) -> Result<Option<(Self, sys::ze_event_handle_t)>, Error> {
        context.require_level_zero()?;
        let library = context.library();
        if library.sycl_version() == WITHOUT_NEW_EVENTS {
            return Ok(None);
        }
        if !SUPPORTED_VERSIONS.contains(&library.sycl_version()) {
            return Err(Error::Unavailable {
                purpose: "SYCL event that Level Zero signals",
                reason: format!(
                    "{} is neither of SYCL 2025 nor of 2026, whose events are supported",
                    library.sycl_path().display()
                ),
            });
        }
        let throwing = &library.throwing;
        // Checks that all functions exist, before anything is allocated.
        library.call(&throwing.event_native, |_| ())?;
        library.call(&throwing.operator_delete, |_| ())?;
        // SAFETY: `operator new` accepts any size.
        let storage = library.call(&throwing.operator_new, |new| unsafe { new(EVENT_SIZE) })?;
        if storage.is_null() {
            return Err(Error::Failed(throwing.operator_new.name));
        }
        // SAFETY: the context is alive. The result is not trivially copyable, so by the ABIs for x86-64 of both systems it
        // is written to the storage that the first argument points to. With a null native event SYCL makes one.
        let made = library.call(&throwing.event_make, |make| unsafe {
            make(storage, 0, context.as_raw(), false, LEVEL_ZERO);
        });
        if let Err(error) = made {
            // SAFETY: the storage is owned here, and no event was constructed in it.
            library.call(&throwing.operator_delete, |delete| unsafe {
                delete(storage)
            })?;
            return Err(error);
        }
        // SAFETY: the storage has an event without another owner, which dpctl deletes with `operator delete`.
        let event = unsafe { Self::own(library, storage, throwing.event_make.name) }?;
        let native = event.native_handle(&throwing.event_native)?;
        Ok(Some((event, native)))
    }

    /// Waits until the event is complete. dpctl catches SYCL's exceptions, so that failed work counts as complete; its queue
    /// reports the error.
    ///
    /// The wait polls the status. SYCL's own wait for a command that depends on a host task holds the lock of SYCL's graph.
    /// dpctl's host tasks need the GIL, and a thread that holds the GIL may be submitting, which acquires that lock: a
    /// deadlock.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) when the event may be of a lost device and is not complete: all devices
    /// are lost, or one is, and the event does not complete within some seconds.
    pub fn wait(&self) -> crate::error::Result<()> {
        let devices = Runtime::get().map_or(&[][..], Runtime::devices);
        let (mut since, mut loss) = (None, None);
        self.wait_unless(|| {
            let lost = devices.iter().map(Device::check_alive);
            let lost: Vec<_> = lost.filter_map(Result::err).collect();
            if lost.is_empty() {
                return false;
            }
            let are_all = lost.len() == devices.len();
            loss = lost.into_iter().next();
            are_all || since.get_or_insert_with(Instant::now).elapsed() > OTHER_DEVICE
        });
        loss.filter(|_| !self.is_complete()).map_or(Ok(()), Err)
    }

    /// As [`wait`](Self::wait), but returns when `is_lost`, which is called from time to time: work on a lost device never
    /// completes, and SYCL reports such an event as submitted.
    pub(super) fn wait_unless(&self, mut is_lost: impl FnMut() -> bool) {
        let poll = Poll::start();
        let mut checked = Instant::now();
        while matches!(self.status(), SUBMITTED | RUNNING) {
            if checked.elapsed() > LOSS_INTERVAL {
                if is_lost() {
                    return;
                }
                checked = Instant::now();
            }
            poll.pause();
        }
        if !self.is_complete() {
            // SAFETY: the reference is alive; dpctl catches exceptions.
            unsafe { (self.functions().event_wait)(self.as_raw()) };
        }
    }

    /// Whether the event is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.status() == COMPLETE
    }

    fn status(&self) -> u32 {
        // SAFETY: the reference is alive; dpctl catches exceptions.
        unsafe { (self.functions().event_status)(self.as_raw()) }
    }
}
