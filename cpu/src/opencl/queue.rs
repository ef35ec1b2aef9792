//! Queues of launches.

use opencl_sys as cl;
use opencl_sys::cl_command_queue;
use zeusm_process::Lazy;

use super::quiesce::Call;
use super::{Error, Runtime};

/// A queue. It is never released, since a thread of the runtime could destroy the queue that
/// it is executing.
pub struct Queue {
    pub(super) runtime: &'static Runtime,
    pub(super) raw: cl_command_queue,
}

// SAFETY: OpenCL's queue functions are thread-safe.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// A new queue with profiling, which executes one launch after another.
    ///
    /// # Errors
    /// When the runtime cannot create one.
    pub fn new(runtime: &'static Runtime) -> Result<Self, Error> {
        let properties = [
            u64::from(cl::CL_QUEUE_PROPERTIES),
            cl::CL_QUEUE_PROFILING_ENABLE,
            0,
        ];
        let _call = Call::begin()?;
        let mut code = 0;
        // SAFETY: the properties end in 0, and device and context belong together.
        let raw = unsafe {
            let create = runtime.api.clCreateCommandQueueWithProperties;
            create(
                runtime.context,
                runtime.device.device,
                properties.as_ptr(),
                &raw mut code,
            )
        };
        Error::check("clCreateCommandQueueWithProperties", code)?;
        Ok(Self { runtime, raw })
    }

    /// A queue for queries; no command is enqueued to it.
    pub(super) fn for_queries(runtime: &'static Runtime) -> Option<&'static Self> {
        // There is one runtime.
        static ANY: Lazy<Option<Queue>> = Lazy::new();
        ANY.get_or_make(|| Self::new(runtime).ok()).as_ref()
    }

    /// Lets what was enqueued start.
    ///
    /// # Errors
    /// When the runtime fails.
    pub fn flush(&self) -> Result<(), Error> {
        let _call = Call::begin()?;
        // SAFETY: the queue is alive.
        Error::check("clFlush", unsafe { (self.runtime.api.clFlush)(self.raw) })
    }
}
