//! A launch that was enqueued: waiting for it, being told, and its times.

use std::ffi::c_void;
use std::sync::Arc;

use opencl_sys as cl;
use opencl_sys::cl_event;

use super::rest::{self, Call};
use super::{Error, Runtime};

/// When a launch began and ended, in nanoseconds of the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The first work-item starts.
    pub start: u64,
    /// The last one is done.
    pub end: u64,
}

/// A launch in flight or done.
pub struct Event {
    runtime: &'static Runtime,
    raw: cl_event,
}

// SAFETY: OpenCL's event functions are thread-safe.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// Who is told of the end of a launch, on a thread of the runtime's, and must not block it.
pub trait Observer: Send + Sync {
    /// The launch is done.
    fn completed(self: Arc<Self>);
}

impl Event {
    pub(super) fn new(runtime: &'static Runtime, raw: cl_event) -> Self {
        Self { runtime, raw }
    }

    pub(super) fn raw(&self) -> cl_event {
        self.raw
    }

    /// Waits until the launch is done; the caller's thread may take part in the work.
    ///
    /// # Errors
    /// When the launch failed.
    pub fn wait(&self) -> Result<(), Error> {
        let _call = Call::begin();
        // SAFETY: one event, alive.
        Error::check("clWaitForEvents", unsafe {
            (self.runtime.api.clWaitForEvents)(1, &raw const self.raw)
        })
    }

    /// How a launch that is done has ended.
    ///
    /// # Errors
    /// When the launch failed.
    pub fn outcome(&self) -> Result<(), Error> {
        let mut status: cl::cl_int = 0;
        // SAFETY: the value is one cl_int.
        let code = unsafe {
            (self.runtime.api.clGetEventInfo)(
                self.raw,
                cl::CL_EVENT_COMMAND_EXECUTION_STATUS,
                size_of_val(&status),
                (&raw mut status).cast(),
                std::ptr::null_mut(),
            )
        };
        Error::check("clGetEventInfo", code)?;
        // A negative status is the error that ended it.
        Error::check("the launch", status.min(cl::CL_SUCCESS))
    }

    /// Tells `observer` when the launch is done, or at once if it is.
    ///
    /// # Errors
    /// When the runtime refuses; then `observer` is never told.
    pub fn tell<O: Observer + 'static>(&self, observer: Arc<O>) -> Result<(), Error> {
        let _call = Call::begin();
        let data = Arc::into_raw(observer);
        // SAFETY: `finished` has the type that is asked for, and takes the count over when it is called, which is once.
        let code = unsafe {
            (self.runtime.api.clSetEventCallback)(
                self.raw,
                cl::CL_COMPLETE,
                Some(finished::<O>),
                data.cast_mut().cast(),
            )
        };
        Error::check("clSetEventCallback", code).inspect_err(|_| {
            // SAFETY: refused, so nobody else will take the count.
            drop(unsafe { Arc::from_raw(data) });
        })
    }

    /// When it ran; `None` before its end.
    pub fn times(&self) -> Option<Times> {
        let ask = |what| {
            let mut time: cl::cl_ulong = 0;
            // SAFETY: the value is one cl_ulong.
            let code = unsafe {
                (self.runtime.api.clGetEventProfilingInfo)(
                    self.raw,
                    what,
                    size_of_val(&time),
                    (&raw mut time).cast(),
                    std::ptr::null_mut(),
                )
            };
            (code == cl::CL_SUCCESS).then_some(time)
        };
        Some(Times {
            start: ask(cl::CL_PROFILING_COMMAND_START)?,
            end: ask(cl::CL_PROFILING_COMMAND_END)?,
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _call = Call::begin();
        rest::forget(self.raw);
        // SAFETY: made by the enqueue that gave it to us, released once.
        unsafe { (self.runtime.api.clReleaseEvent)(self.raw) };
    }
}

/// What OpenCL calls at the end of a launch.
unsafe extern "C" fn finished<O: Observer>(_: cl_event, _status: cl::cl_int, data: *mut c_void) {
    let _call = Call::from_within();
    // SAFETY: the count that `tell` let go of, and this is the one call that it is for.
    unsafe { Arc::from_raw(data.cast_const().cast::<O>()) }.completed();
}
