//! The handle of an event.

use std::sync::Arc;

use super::descriptor::Received;
use super::driver::{DriverHandle, Subject};
use super::handle::IpcHandle;
use super::shared_event::SharedEvent;
use super::{Error, descriptor, driver, exports, identity, imported_file, lifeline, server};
use crate::event::Event;
use crate::pool;
use crate::queue::RawQueue;

/// Identifies the completion of an operation to other processes of the machine, whose devices can wait for it.
///
/// It can be opened as long as this process runs, also after the operation is complete and its event dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcEventHandle(IpcHandle);

impl IpcEventHandle {
    /// Makes a handle of an event, which `queue` signals to other processes: it is complete there after the event and all
    /// operations submitted to the queue so far. Of an event that is complete, nothing is submitted.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the driver does not support IPC of events, [`Error::LevelZero`] when the event has failed, and
    /// errors of Level Zero and of the system.
    pub fn new(queue: &RawQueue, event: &Event) -> Result<Self, Error> {
        pool::retry_if(Error::is_short_of_descriptors, || Self::make(queue, event))
    }

    fn make(queue: &RawQueue, event: &Event) -> Result<Self, Error> {
        let token = server::start()?;
        let device = queue.device();
        let handle = |export, driver_handle| {
            exports::event_handle(IpcHandle {
                boot: identity::boot_id()?,
                device: device.uuid(),
                process: std::process::id(),
                subject: Subject::Event,
                token,
                export,
                driver_handle,
                allocation_id: 0,
                allocation_size: 0,
                offset: 0,
                size: 0,
                tag: Default::default(),
            })
        };
        if event.is_over() {
            event.check_submission()?;
            // One that is not exported is complete.
            let export = u64::from_ne_bytes(exports::random()?);
            return handle(export, DriverHandle([0; 64])).map(Self);
        }
        let explain = |cause| driver::explain(device, Subject::Event, 0, cause);
        let mut shared = SharedEvent::create(queue.context()).map_err(explain)?;
        let files = imported_file::lock();
        let exported = shared.export(explain);
        drop(files);
        let (driver_handle, export) = exported?;
        let handle = handle(export, driver_handle)?;
        queue.signal_shared(event, Arc::new(shared))?;
        Ok(Self(handle))
    }

    /// Opens the event for the wait lists of `queue`, whose device waits for it, and of other queues. If the process that made the
    /// handle ends before the operation is complete, the event fails, and so do the operations that wait for it.
    ///
    /// # Errors
    /// Those of [`IpcHandle::open`] for another machine or device, and for a forged handle, or a process that is gone or another
    /// user's; [`crate::Error::ProducerFailed`] when the operation has failed; [`Error::Unsupported`], and errors of Level Zero
    /// and of the system.
    pub fn open(&self, queue: &RawQueue) -> Result<Event, Error> {
        pool::retry_if(Error::is_short_of_descriptors, || self.open_at_once(queue))
    }

    fn open_at_once(&self, queue: &RawQueue) -> Result<Event, Error> {
        let handle = &self.0;
        identity::check(handle.boot, handle.device, queue.device())?;
        let Received {
            descriptor,
            lifeline,
            is_complete,
            files,
        } = descriptor::receive(handle)?;
        if is_complete {
            drop(files);
            return Ok(queue.complete_event()?.of_another());
        }
        let is_own = exports::is_own(handle);
        let subject = (queue.device(), Subject::Event);
        let opened = handle
            .driver_handle
            .open(descriptor, is_own, subject, |it| {
                // SAFETY: `descriptor::receive` has verified that the handle's process made it with this content, provided this
                // descriptor and is trusted. Its driver is of the same kind, as it has the same device on the same machine.
                unsafe { SharedEvent::open_pool(queue.context(), it) }
            });
        drop(files);
        // SAFETY: it has been opened here.
        let shared = unsafe { SharedEvent::of(queue.context(), opened?, handle.process, true) }?;
        let shared = Arc::new(shared);
        if let Some(lifeline) = lifeline {
            lifeline::watch(handle.token, lifeline, &shared)?;
        }
        Ok(queue.opened(shared)?)
    }

    /// The serialised handle, to be sent to another process of the machine by any means. As with [`IpcHandle::to_bytes`], they
    /// contain a secret of this process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Parses the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Version`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let handle = IpcHandle::parse(bytes)?;
        match handle.subject {
            Subject::Event => Ok(Self(handle)),
            Subject::Memory(_) => Err(Error::Malformed {
                length: bytes.len(),
                reason: "they are the handle of memory, not of an event",
            }),
        }
    }

    /// The UUID of the device that signals the event.
    #[must_use]
    pub fn device_uuid(&self) -> [u8; 16] {
        self.0.device_uuid()
    }

    /// The process whose operation it is.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.0.process()
    }
}
