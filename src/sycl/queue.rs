//! SYCL queues.

use std::ptr;

use super::library::Functions;
use super::reference::sealed::{self, Calls, Comparison};
use super::reference::{Capsule, Class, Comparable, Reference};
use super::{ContextRef, DeviceRef, Error, EventRef};

/// The class `sycl::queue`.
#[derive(Debug)]
pub enum Queue {}

/// A SYCL queue (`DPCTLSyclQueueRef`).
pub type QueueRef = Reference<Queue>;

impl Class for Queue {
    const NAME: &'static str = "SYCL queue";
}

impl Capsule for Queue {
    const NAME: &'static std::ffi::CStr = c"SyclQueueRef";
    const USED_NAME: &'static std::ffi::CStr = c"used_SyclQueueRef";
}

impl Comparable for Queue {}

impl sealed::Class for Queue {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLQueue_Copy",
            copy: functions.queue_copy,
            delete: functions.queue_delete,
            backend: functions.queue_backend,
        }
    }
}

impl sealed::Comparable for Queue {
    fn comparison(functions: &Functions) -> Comparison {
        Comparison {
            are_eq: functions.queue_are_eq,
            hash: functions.queue_hash,
        }
    }
}

/// The SYCL runtime from which on an empty queue is one that has nothing to do.
const TELLS_IDLE: u32 = 9;

impl QueueRef {
    /// Makes a queue with default properties, as `dpctl.SyclQueue(context, device)` does.
    ///
    /// # Errors
    /// [`Error::Failed`], when the device is not of the context for instance.
    pub fn create(context: &ContextRef, device: &DeviceRef) -> Result<Self, Error> {
        let library = context.library();
        // SAFETY: both references are alive; no handler and no properties are given. dpctl catches what the
        // constructor throws, and answers null or a new reference.
        unsafe {
            let queue = (library.functions.queue_create)(
                context.as_raw(),
                device.as_raw(),
                ptr::null_mut(),
                0,
            );
            Self::own(library, queue)
        }
        .ok_or(Error::Failed {
            function: "DPCTLQueue_Create",
        })
    }

    /// The context that the queue is in.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn context(&self) -> Result<ContextRef, Error> {
        // SAFETY: the reference is alive; the context is kept in the queue, so nothing is thrown, and the answer is a
        // new reference.
        unsafe {
            let context = (self.functions().queue_context)(self.as_raw());
            ContextRef::own(self.library(), context)
        }
        .ok_or(Error::Failed {
            function: "DPCTLQueue_GetContext",
        })
    }

    /// The device that the queue submits to.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn device(&self) -> Result<DeviceRef, Error> {
        // SAFETY: the reference is alive; the answer is null or a new reference.
        unsafe {
            let device = (self.functions().queue_device)(self.as_raw());
            DeviceRef::own(self.library(), device)
        }
        .ok_or(Error::Failed {
            function: "DPCTLQueue_GetDevice",
        })
    }

    /// Whether work runs in the order in which it is submitted.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        // SAFETY: the reference is alive; the property is kept in the queue, so nothing is thrown.
        unsafe { (self.functions().queue_is_in_order)(self.as_raw()) }
    }

    /// Whether everything has certainly run that was submitted to the queue before; then its results can be seen as after
    /// a wait. No before SYCL 9, which may forget what waits for a host task of another queue.
    ///
    /// Source: the extension `sycl_ext_oneapi_queue_empty`.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let library = self.library();
        if library.sycl_version() < TELLS_IDLE {
            return false;
        }
        // SAFETY: the reference is a `sycl::queue *`, which is the `this` of the method.
        let is_empty = library.call(&library.throwing.queue_is_empty, |is_empty| unsafe {
            is_empty(self.as_raw())
        });
        // Of a failure the wait that follows tells.
        is_empty.unwrap_or(false)
    }

    /// Waits until everything has run that was submitted to the queue before.
    ///
    /// For an in-order queue, SYCL's own wait is one for the last command's event, which [`EventRef::wait`] avoids.
    ///
    /// # Errors
    /// [`Error::Thrown`] with SYCL's words, when the device is lost for instance.
    pub fn wait(&self) -> Result<(), Error> {
        if self.is_in_order()
            && let Ok(last) = self.barrier()
        {
            last.wait();
            if last.is_complete() {
                return Ok(());
            }
        }
        let library = self.library();
        // SAFETY: the reference is alive; dpctl calls the queue's method and catches nothing.
        library.call(&library.throwing.queue_wait, |wait| unsafe {
            wait(self.as_raw());
        })
    }

    /// An event that is complete once everything has run that was submitted to the queue before.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn barrier(&self) -> Result<EventRef, Error> {
        // SAFETY: the reference is alive; dpctl catches what submitting throws, and answers null or a new reference.
        unsafe {
            let event = (self.functions().queue_barrier)(self.as_raw());
            EventRef::own(self.library(), event)
        }
        .ok_or(Error::Failed {
            function: "DPCTLQueue_SubmitBarrier",
        })
    }
}
