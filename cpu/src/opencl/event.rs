//! A launch that was enqueued: waiting for it, being told, and its times.

use std::ffi::c_void;

use opencl_sys as cl;
use opencl_sys::cl_event;

use super::device::{info, number};
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

/// What runs at the end of a launch.
type Callback = Box<dyn FnOnce() + Send>;

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

    /// Runs `callback` when the launch is done, on a thread of the runtime's or at once; it must not block.
    ///
    /// # Errors
    /// When the runtime refuses; then `callback` has not run and never will.
    pub fn on_complete(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let boxed: Box<Callback> = Box::new(Box::new(callback));
        let data = Box::into_raw(boxed);
        // SAFETY: `finished` has the type that is asked for, and takes the box over when it is called, which is once.
        let code = unsafe {
            (self.runtime.api.clSetEventCallback)(
                self.raw,
                cl::CL_COMPLETE,
                Some(finished),
                data.cast(),
            )
        };
        Error::check("clSetEventCallback", code).inspect_err(|_| {
            // SAFETY: refused, so nobody else will take the box.
            drop(unsafe { Box::from_raw(data) });
        })
    }

    /// When it ran; `None` before its end.
    pub fn times(&self) -> Option<Times> {
        let ask = |what| {
            // SAFETY: `info` gives a buffer of the size that was asked for.
            let answer = info(|size, value, needed| unsafe {
                (self.runtime.api.clGetEventProfilingInfo)(self.raw, what, size, value, needed)
            });
            (!answer.is_empty()).then(|| number(&answer))
        };
        Some(Times {
            start: ask(cl::CL_PROFILING_COMMAND_START)?,
            end: ask(cl::CL_PROFILING_COMMAND_END)?,
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made by the enqueue that gave it to us, released once.
        unsafe { (self.runtime.api.clReleaseEvent)(self.raw) };
    }
}

/// What OpenCL calls at the end of a launch.
unsafe extern "C" fn finished(_: cl_event, _status: cl::cl_int, data: *mut c_void) {
    // SAFETY: the box that `on_complete` let go of, and this is the one call that it is for.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    callback();
}
