//! SYCL events.

use std::thread;
use std::time::Duration;

use level_zero_sys as sys;

use super::library::Functions;
use super::reference::sealed::{self, Calls};
use super::reference::{Capsule, Class, Reference};
use super::{ContextRef, Error};

/// The class `sycl::event`.
#[derive(Debug)]
pub enum Event {}

/// A SYCL event (`DPCTLSyclEventRef`).
pub type EventRef = Reference<Event>;

/// `sycl::backend::ext_oneapi_level_zero`.
const LEVEL_ZERO: std::ffi::c_char = 2;

/// The major versions of libsycl whose `sycl::event` and `make_event` are known: SYCL 2025 and 2026.
const KNOWN: [u32; 2] = [8, 9];
/// The one of SYCL 2024, which wraps events and makes none.
const MAKES_NONE: u32 = 7;

/// Bytes for a `sycl::event`: in these versions it is one `std::shared_ptr`, and a little more does no harm.
const SIZE: usize = 64;

/// `DPCTL_SUBMITTED`, `DPCTL_RUNNING` and `DPCTL_COMPLETE` of `DPCTLSyclEventStatusType`.
const SUBMITTED: u32 = 1;
const RUNNING: u32 = 2;
const COMPLETE: u32 = 3;

/// How long a wait sleeps between two looks: at first, and at most.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

impl Class for Event {
    const NAME: &'static str = "SYCL event";
}

impl Capsule for Event {
    const NAME: &'static std::ffi::CStr = c"SyclEventRef";
    const USED_NAME: &'static std::ffi::CStr = c"used_SyclEventRef";
}

impl sealed::Class for Event {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLEvent_Copy",
            copy: functions.event_copy,
            delete: functions.event_delete,
            backend: functions.event_backend,
        }
    }
}

impl EventRef {
    /// An event of SYCL's own in a Level Zero context that is complete until its native event is reset, and again when
    /// that is signalled. SYCL owns the native event, which is valid as long as the reference.
    ///
    /// `None` with SYCL 2024, which makes none.
    ///
    /// # Errors
    /// [`Error::Backend`], [`Error::Failed`], [`Error::Thrown`]; [`Error::Unavailable`] with a SYCL runtime whose events
    /// are not known here.
    pub fn create(context: &ContextRef) -> Result<Option<(Self, sys::ze_event_handle_t)>, Error> {
        context.require_level_zero()?;
        let library = context.library();
        if library.sycl_version() == MAKES_NONE {
            return Ok(None);
        }
        if !KNOWN.contains(&library.sycl_version()) {
            return Err(Error::Unavailable {
                purpose: "SYCL event that Level Zero signals",
                reason: format!(
                    "{} is not libsycl.so.8 or libsycl.so.9, whose events are known",
                    library.sycl_path().display()
                ),
            });
        }
        let throwing = &library.throwing;
        // All of them, before there is anything to give back.
        library.call(&throwing.event_native, |_| ())?;
        library.call(&throwing.operator_delete, |_| ())?;
        // SAFETY: any size may be asked for.
        let room = library.call(&throwing.operator_new, |new| unsafe { new(SIZE) })?;
        // SAFETY: the context is alive, and there is room for an event, which goes where the first argument points: an
        // object that is not trivial to copy, by the System V ABI for x86-64. Without a native event SYCL makes one.
        let made = library.call(&throwing.event_make, |make| unsafe {
            make(room, 0, context.as_raw(), false, LEVEL_ZERO);
        });
        if let Err(error) = made {
            // SAFETY: the room is ours, and no event was made in it.
            library.call(&throwing.operator_delete, |delete| unsafe { delete(room) })?;
            return Err(error);
        }
        let failed = Error::Failed {
            function: "sycl::detail::make_event",
        };
        // SAFETY: the room holds an event that nobody else owns, and dpctl deletes it as it was made.
        let event = unsafe { Self::own(library, room) }.ok_or(failed.clone())?;
        // SAFETY: the reference is alive, and its native event has just been made.
        let native = library.call(&throwing.event_native, |native| unsafe {
            native(event.as_raw())
        })?;
        match native {
            0 => Err(failed),
            native => Ok(Some((event, std::ptr::with_exposed_provenance_mut(native)))),
        }
    }

    /// Waits until what the event stands for has run. dpctl catches what SYCL throws and returns nothing, so that work which
    /// failed counts as done; its queue tells the error.
    ///
    /// It asks for the status from time to time. SYCL's own wait for a command that comes after a host task holds the lock of
    /// SYCL's graph; dpctl's host tasks need the GIL, and a thread that holds the GIL may be submitting, which takes that lock.
    pub fn wait(&self) {
        let mut nap = NAPS.0;
        while matches!(self.status(), SUBMITTED | RUNNING) {
            thread::sleep(nap);
            nap = NAPS.1.min(nap * 2);
        }
        if !self.is_complete() {
            // SAFETY: the reference is alive; dpctl catches what waiting throws.
            unsafe { (self.functions().event_wait)(self.as_raw()) };
        }
    }

    /// Whether it has run already.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.status() == COMPLETE
    }

    fn status(&self) -> u32 {
        // SAFETY: the reference is alive; dpctl catches what asking throws.
        unsafe { (self.functions().event_status)(self.as_raw()) }
    }
}
