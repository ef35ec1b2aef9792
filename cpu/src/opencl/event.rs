//! The event of an enqueued launch: waiting, completion callback, and times.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use opencl_sys as cl;
use opencl_sys::cl_event;

use super::quiesce::{self, Call};
use super::{Error, Runtime};
use crate::check::DeviceCode;

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

impl Event {
    pub(super) fn new(runtime: &'static Runtime, raw: cl_event) -> Self {
        Self { runtime, raw }
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
            (self.runtime.api.clWaitForEvents)(1, &raw const self.raw)
        })
    }

    /// The OpenCL object.
    pub(super) fn raw(&self) -> cl_event {
        self.raw
    }

    /// Has `observer` called with the outcome when the launch has ended: on a thread of the runtime, where it must not
    /// block, or at once on this thread.
    ///
    /// # Errors
    /// When the runtime refuses; then `observer` is never called.
    pub fn on_complete<F: FnOnce(Result<(), Error>) + Send + 'static>(
        &self,
        observer: F,
    ) -> Result<(), Error> {
        let _call = Call::begin()?;
        let data = Box::into_raw(Box::new(observer));
        // SAFETY: `finished` has the callback's type, is called once, and takes ownership of the box then.
        let code = unsafe {
            (self.runtime.api.clSetEventCallback)(
                self.raw,
                cl::CL_COMPLETE,
                Some(finished::<F>),
                data.cast(),
            )
        };
        Error::check("clSetEventCallback", code).inspect_err(|_| {
            // SAFETY: the callback was not registered, so this function still owns the box.
            drop(unsafe { Box::from_raw(data) });
        })
    }

    /// When it ran; `None` before its end.
    pub fn times(&self) -> Option<Times> {
        let _call = Call::begin().ok()?;
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
        let call = Call::begin();
        quiesce::unregister_launch(self.raw);
        if call.is_err() {
            return;
        }
        // SAFETY: made by the enqueue that gave it to us, released once.
        unsafe { (self.runtime.api.clReleaseEvent)(self.raw) };
    }
}

/// The callback at the end of a launch.
///
/// # Safety
/// `data` must be a box of `F` that the caller passes on.
unsafe extern "C" fn finished<F: FnOnce(Result<(), Error>)>(
    _: cl_event,
    status: cl::cl_int,
    data: *mut c_void,
) {
    let _call = Call::from_within();
    // SAFETY: `on_complete` passed ownership of the box, and there is one call.
    let observer = unsafe { Box::from_raw(data.cast::<F>()) };
    // A negative status is an error. A panic must not cross into C.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        observer(Error::check("the launch", status.min(cl::CL_SUCCESS)));
    }));
}
