//! The event of an enqueued launch: waiting, completion callback, and times.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use opencl_sys as cl;
use opencl_sys::cl_event;

use super::owned::Owned;
use super::quiesce::{self, Call};
use super::{Error, Runtime};
use crate::check::DeviceCode;

/// What the end of launches is reported to.
pub trait Observer {
    /// The launch that was given this key has ended: called on a thread of the runtime, where it must not block, or at once on
    /// the thread that asks for the report.
    fn ended(key: u64, outcome: Result<(), Error>);
}

/// A launch in flight or done.
pub struct Event {
    runtime: &'static Runtime,
    event: Owned<cl_event>,
}

impl Event {
    pub(super) fn new(runtime: &'static Runtime, event: Owned<cl_event>) -> Self {
        Self { runtime, event }
    }

    /// Waits until the launch is done; the calling thread may help to execute it.
    ///
    /// # Errors
    /// When the launch failed.
    pub fn wait(&self) -> Result<(), Error> {
        let _call = Call::begin()?;
        let _device_code = DeviceCode::begin();
        // SAFETY: one event, alive.
        Error::check("clWaitForEvents", unsafe {
            (self.runtime.api.clWaitForEvents)(1, &raw const self.event.raw)
        })
    }

    /// Has the end of the launch reported to `O`, with this key. The caller is in the [`Call`] that enqueued it, so that a fork or
    /// the exit waits for the launch from then on.
    ///
    /// # Errors
    /// When the runtime refuses; then there is no report.
    pub fn on_complete<O: Observer>(&self, key: u64) -> Result<(), Error> {
        let _call = Call::begin()?;
        quiesce::launch_begins();
        // SAFETY: `finished` has the callback's type, and its data is a number.
        let code = unsafe {
            (self.runtime.api.clSetEventCallback)(
                self.event.raw,
                cl::CL_COMPLETE,
                Some(finished::<O>),
                ptr::without_provenance_mut(key as usize),
            )
        };
        Error::check("clSetEventCallback", code).inspect_err(|_| quiesce::launch_is_lost())
    }

    /// When its first work-item started and its last one was done, in nanoseconds of the device's clock; `None` before its end.
    pub fn times(&self) -> Option<(u64, u64)> {
        let _call = Call::begin().ok()?;
        let ask = |what| {
            let mut time: cl::cl_ulong = 0;
            // SAFETY: the value is one cl_ulong.
            let code = unsafe {
                (self.runtime.api.clGetEventProfilingInfo)(
                    self.event.raw,
                    what,
                    size_of_val(&time),
                    (&raw mut time).cast(),
                    ptr::null_mut(),
                )
            };
            (code == cl::CL_SUCCESS).then_some(time)
        };
        let start = ask(cl::CL_PROFILING_COMMAND_START)?;
        Some((start, ask(cl::CL_PROFILING_COMMAND_END)?))
    }
}

/// The callback at the end of a launch.
extern "C" fn finished<O: Observer>(_: cl_event, status: cl::cl_int, key: *mut c_void) {
    let _call = Call::at_end_of_launch();
    // A negative status is an error. A panic must not cross into C.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let outcome = Error::check("the launch", status.min(cl::CL_SUCCESS));
        O::ended(key.addr() as u64, outcome);
    }));
}
