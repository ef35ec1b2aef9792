//! An ordered queue of copies and fills over one immediate command list.

mod between;
mod brief;
mod gate;
mod hint;
mod order;
mod submission;
mod transfer;

use std::fmt;
use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use parking_lot::{Mutex, ReentrantMutex};
use submission::State;

use crate::Result;
use crate::call::enumerate;
use crate::context::Context;
use crate::device::Device;
use crate::error::Error;
use crate::event::{Event, EventPool};
use crate::operation::Operation;
use crate::usm::{Kind, Memory};

/// Does copies and fills one after the other, in the order of the calls. Cheap to clone; any thread may use it.
///
/// Dropping the last clone waits for what is under way.
///
/// Source: Level Zero specification, "Core programming guide", Command lists, immediate command lists.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

/// Rows in memory, for [`Queue::copy_rows_raw`].
#[derive(Clone, Copy, Debug)]
pub struct Rows<P> {
    /// The first byte of the first row.
    pub first: P,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes from slice to slice.
    pub slice_pitch: usize,
}

struct Inner {
    context: Context,
    device: Device,
    list: sys::ze_command_list_handle_t,
    events: Arc<EventPool>,
    /// How to wait for the list itself, where that is known.
    synchronize: Option<brief::Synchronize>,
    /// Where the jobs of [`Queue::gate`] run.
    gates: gate::Worker,
    /// Also what keeps two threads from appending at once, which the specification forbids.
    state: Mutex<State>,
    /// Held by a thread that drops what finished operations held.
    collecting: ReentrantMutex<()>,
}

// SAFETY: the handles may be used from any thread, and appends are ordered by the mutex.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Queue {
    /// Makes a queue on the first of the device's engines that both computes and copies.
    ///
    /// # Errors
    /// [`Error::Call`] with Level Zero's answer.
    pub fn new(context: &Context, device: &Device) -> Result<Self> {
        let description = sys::ze_command_queue_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            ordinal: engine(device)?,
            mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            ..Default::default()
        };
        let mut list = ptr::null_mut();
        // SAFETY: context and device are alive; description and list outlive the call.
        unsafe {
            call!(
                context.library(),
                zeCommandListCreateImmediate(
                    context.handle(),
                    device.handle(),
                    &description,
                    &mut list
                )
            )
        }?;
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            device: device.clone(),
            list,
            events: EventPool::new(context, device),
            synchronize: brief::find_synchronize(context.library()),
            gates: gate::Worker::default(),
            state: Mutex::default(),
            collecting: ReentrantMutex::new(()),
        })))
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The device it works on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Copies `source` over `destination`, which must be as long, and waits.
    ///
    /// # Errors
    /// [`Error::Length`] for different lengths, before anything is copied; [`Error::Operation`] with Level Zero's
    /// answer.
    pub fn copy<D: Kind, S: Kind>(
        &self,
        destination: &mut Memory<D>,
        source: &Memory<S>,
    ) -> Result<()> {
        same_length("copy", source.size(), destination.size())?;
        // SAFETY: both sides are borrowed until the copy is done, one of them exclusively.
        unsafe {
            self.copy_briefly_raw(
                destination.as_ptr().cast_mut().cast(),
                source.as_ptr().cast(),
                source.size(),
            )
        }?
        .map_or(Ok(()), |event| self.finish(&event, "copy", source.size()))
    }

    /// Copies `source`, which must be as long as the memory, into it and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn write<D: Kind>(&self, destination: &mut Memory<D>, source: &[u8]) -> Result<()> {
        same_length("write", source.len(), destination.size())?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: both sides are borrowed until the copy is done, one of them exclusively.
        unsafe { self.copy_briefly_raw(to.cast(), from.cast(), source.len()) }?
            .map_or(Ok(()), |event| self.finish(&event, "write", source.len()))
    }

    /// Copies the memory into `destination`, which must be as long, and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn read<S: Kind>(&self, source: &Memory<S>, destination: &mut [u8]) -> Result<()> {
        same_length("read", source.size(), destination.len())?;
        let (to, from) = (destination.as_mut_ptr(), source.as_ptr());
        // SAFETY: both sides are borrowed until the copy is done, one of them exclusively.
        unsafe { self.copy_briefly_raw(to.cast(), from.cast(), source.size()) }?
            .map_or(Ok(()), |event| self.finish(&event, "read", source.size()))
    }

    /// Sets every byte of the memory to `value` and waits.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer.
    pub fn fill<D: Kind>(&self, destination: &mut Memory<D>, value: u8) -> Result<()> {
        let (to, size) = (destination.as_ptr().cast_mut(), destination.size());
        // SAFETY: the memory is borrowed exclusively until the fill is done.
        unsafe { self.fill_briefly_raw(to.cast(), value, size) }?
            .map_or(Ok(()), |event| self.finish(&event, "fill", size))
    }

    /// Begins to copy `source` over `destination`, and owns both until that is done.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_async<D: Kind, S: Kind>(
        &self,
        destination: Memory<D>,
        source: Memory<S>,
    ) -> Result<Operation<(Memory<D>, Memory<S>)>> {
        same_length("copy", source.size(), destination.size())?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: the operation owns both sides until the copy is done.
        let event = unsafe { self.copy_raw(to.cast(), from.cast(), source.size()) }?;
        self.operation(event, (destination, source))
    }

    /// Begins to copy `source` into the memory, and owns both until that is done.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn write_async<D: Kind>(
        &self,
        destination: Memory<D>,
        source: Vec<u8>,
    ) -> Result<Operation<(Memory<D>, Vec<u8>)>> {
        same_length("write", source.len(), destination.size())?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: the operation owns both sides until the copy is done; moving a `Vec` leaves its bytes in place.
        let event = unsafe { self.copy_raw(to.cast(), from.cast(), source.len()) }?;
        self.operation(event, (destination, source))
    }

    /// Begins to copy the memory into `destination`, and owns both until that is done.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn read_async<S: Kind>(
        &self,
        source: Memory<S>,
        mut destination: Vec<u8>,
    ) -> Result<Operation<(Memory<S>, Vec<u8>)>> {
        same_length("read", source.size(), destination.len())?;
        let (to, from) = (destination.as_mut_ptr(), source.as_ptr());
        // SAFETY: as for `write_async`.
        let event = unsafe { self.copy_raw(to.cast(), from.cast(), source.size()) }?;
        self.operation(event, (source, destination))
    }

    /// Begins to set every byte of the memory to `value`, and owns it until that is done.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn fill_async<D: Kind>(
        &self,
        destination: Memory<D>,
        value: u8,
    ) -> Result<Operation<Memory<D>>> {
        let (to, size) = (destination.as_ptr().cast_mut(), destination.size());
        // SAFETY: the operation owns the memory until the fill is done.
        let event = unsafe { self.fill_raw(to.cast(), value, size) }?;
        self.operation(event, destination)
    }

    /// Waits for an operation of this queue, and says what it was when it failed.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer.
    pub fn finish(&self, event: &Event, operation: &'static str, size: usize) -> Result<()> {
        while !event
            .wait(None)
            .map_err(|cause| self.failed(operation, size, cause))?
        {}
        Ok(())
    }

    fn operation<T: Send + 'static>(
        &self,
        event: Option<Event>,
        operands: T,
    ) -> Result<Operation<T>> {
        let event = match event {
            Some(event) => event,
            None => self.done_event()?,
        };
        Ok(Operation::new(self, event, operands))
    }

    /// An event that is complete: the end of an operation on nothing.
    fn done_event(&self) -> Result<Event> {
        let event = self.0.events.take()?;
        event.signal()?;
        Ok(event)
    }

    fn failed(&self, operation: &'static str, size: usize, cause: Error) -> Error {
        Error::Operation {
            operation,
            size,
            device: self.0.device.name().to_owned(),
            cause: Box::new(cause),
        }
    }

    fn library(&self) -> &'static sys::Library {
        self.0.context.library()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        // Work on a device that is lost for good is over.
        for event in state
            .under_way
            .iter()
            .map(|(event, _)| event)
            .chain(&state.last)
        {
            event.drain();
        }
        // SAFETY: nothing is under way, and this was the last owner.
        let _ = unsafe { call!(self.context.library(), zeCommandListDestroy(self.list)) };
    }
}

/// Equal when they are clones of one queue.
impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Queue {}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("device", &self.0.device)
            .field("context", &self.0.context)
            .finish_non_exhaustive()
    }
}

fn same_length(operation: &'static str, source_size: usize, destination_size: usize) -> Result<()> {
    if source_size == destination_size {
        Ok(())
    } else {
        Err(Error::Length {
            operation,
            source_size,
            destination_size,
        })
    }
}

/// The ordinal of the first group of engines that computes and copies; 0 when the device tells of none.
fn engine(device: &Device) -> Result<u32> {
    let empty = sys::ze_command_queue_group_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
        ..Default::default()
    };
    let groups = enumerate(empty, |count, groups| {
        // SAFETY: the device is alive; `groups` is null or has room for `count`.
        unsafe {
            call!(
                device.driver().library(),
                zeDeviceGetCommandQueueGroupProperties(device.handle(), count, groups)
            )
        }
    })?;
    let wanted = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
    Ok(groups
        .iter()
        .zip(0u32..)
        .find(|(group, _)| group.flags & wanted == wanted)
        .map_or(0, |(_, ordinal)| ordinal))
}
