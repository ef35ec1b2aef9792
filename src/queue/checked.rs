//! The queue for typed memory, which checks the operands of each operation.

use std::ops::Deref;
use std::ptr;

use super::operation::Operation;
use super::raw::RawQueue;
use super::submission::Completion;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::usm::{Kind, Memory, UsmKind};

/// An in-order queue of copies and fills. Cheap to clone; any thread may use it.
///
/// Memory has to belong to the queue's context, and to its device or a peer device that it can access. It dereferences to a
/// [`RawQueue`], whose functions with pointers are unsafe.
///
/// Dropping the last clone waits for the operations in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue(RawQueue);

impl Queue {
    /// Makes a queue on the first of the device's command queue groups that supports compute and copy.
    ///
    /// # Errors
    /// [`Error::OtherDriver`] for a device of another driver than the context's; [`Error::Call`] with Level Zero's result.
    pub fn new(context: &Context, device: &Device) -> Result<Self> {
        RawQueue::new(context, device).map(Self)
    }

    /// As [`RawQueue::depends_on`].
    ///
    /// # Errors
    /// As there.
    pub fn depends_on(&self, wait_list: &[Event]) -> Result<Self> {
        self.0.depends_on(wait_list).map(Self)
    }

    /// Copies `source` to `destination`, which must have the same size, and waits.
    ///
    /// # Errors
    /// [`Error::Length`] for different lengths, and [`Error::OtherContext`] and [`Error::NoPeerAccess`] for memory that the
    /// queue's device cannot access; nothing has been copied then. [`Error::Operation`] with Level Zero's result.
    pub fn copy<D: Kind, S: Kind>(
        &self,
        destination: &mut Memory<D>,
        source: &Memory<S>,
    ) -> Result<()> {
        let to = self.bytes("copy", destination)?;
        let from = self.bytes("copy", source)?;
        // SAFETY: both operands are checked, and borrowed until the copy is complete, the destination exclusively.
        let event = unsafe { self.submit_bytes("copy", to, from, Completion::SpinWait) }?;
        self.end(event, "copy", from.len())
    }

    /// Copies `source` to the memory, which must have the same size, and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn write<D: Kind>(&self, destination: &mut Memory<D>, source: &[u8]) -> Result<()> {
        let to = self.bytes("write", destination)?;
        // SAFETY: the memory is checked, and both operands are borrowed until the copy is complete, the destination
        // exclusively.
        let event = unsafe { self.submit_bytes("write", to, source, Completion::SpinWait) }?;
        self.end(event, "write", source.len())
    }

    /// Copies the memory to `destination`, which must have the same size, and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn read<S: Kind>(&self, source: &Memory<S>, destination: &mut [u8]) -> Result<()> {
        let from = self.bytes("read", source)?;
        // SAFETY: the memory is checked, and both operands are borrowed until the copy is complete, the destination
        // exclusively.
        let event = unsafe { self.submit_bytes("read", destination, from, Completion::SpinWait) }?;
        self.end(event, "read", from.len())
    }

    /// Sets every byte of the memory to `value` and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn fill<D: Kind>(&self, destination: &mut Memory<D>, value: u8) -> Result<()> {
        let to = self.bytes("fill", destination)?;
        // SAFETY: the memory is checked, and borrowed exclusively until the fill is complete.
        let event = unsafe { self.fill_raw(to.cast(), value, to.len(), Completion::SpinWait) }?;
        self.end(event, "fill", to.len())
    }

    /// Submits a copy of `source` to `destination`; the operation owns both until it is complete.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_async<D: Kind, S: Kind>(
        &self,
        destination: Memory<D>,
        source: Memory<S>,
    ) -> Result<Operation<(Memory<D>, Memory<S>)>> {
        let to = self.bytes("copy", &destination)?;
        let from = self.bytes("copy", &source)?;
        // SAFETY: both operands are checked, and the operation owns them until it is complete.
        let event = unsafe { self.submit_bytes("copy", to, from, Completion::Event) }?;
        self.operation(event, (destination, source))
    }

    /// Submits a copy of `source` to the memory; the operation owns both until it is complete.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn write_async<D: Kind>(
        &self,
        destination: Memory<D>,
        source: Vec<u8>,
    ) -> Result<Operation<(Memory<D>, Vec<u8>)>> {
        let to = self.bytes("write", &destination)?;
        // SAFETY: the operation owns both operands until it is complete; moving a `Vec` does not move its bytes.
        let event =
            unsafe { self.submit_bytes("write", to, &raw const *source, Completion::Event) }?;
        self.operation(event, (destination, source))
    }

    /// Submits a copy of the memory to `destination`; the operation owns both until it is complete.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn read_async<S: Kind>(
        &self,
        source: Memory<S>,
        mut destination: Vec<u8>,
    ) -> Result<Operation<(Memory<S>, Vec<u8>)>> {
        let from = self.bytes("read", &source)?;
        // SAFETY: as for `write_async`.
        let event =
            unsafe { self.submit_bytes("read", &raw mut *destination, from, Completion::Event) }?;
        self.operation(event, (source, destination))
    }

    /// Submits a fill of the memory with `value`; the operation owns it until it is complete.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn fill_async<D: Kind>(
        &self,
        destination: Memory<D>,
        value: u8,
    ) -> Result<Operation<Memory<D>>> {
        let to = self.bytes("fill", &destination)?;
        // SAFETY: the memory is checked, and the operation owns it until it is complete.
        let event = unsafe { self.fill_raw(to.cast(), value, to.len(), Completion::Event) }?;
        self.operation(event, destination)
    }

    /// The bytes of memory that the queue's device can access.
    fn bytes<K: Kind>(&self, operation: &'static str, memory: &Memory<K>) -> Result<*mut [u8]> {
        let size = memory.size();
        let bytes = ptr::slice_from_raw_parts_mut(memory.as_ptr().cast_mut(), size);
        if size == 0 {
            return Ok(bytes);
        }
        if memory.context() != self.context() {
            return Err(Error::OtherContext {
                operation,
                kind: K::KIND,
                size,
            });
        }
        let (here, there) = (self.device(), memory.device());
        if K::KIND == UsmKind::Host || here == there || here.can_access(there)? {
            return Ok(bytes);
        }
        Err(Error::NoPeerAccess {
            operation,
            kind: K::KIND,
            size,
            device: here.to_string(),
            memory_device: there.to_string(),
        })
    }

    /// Submits a copy between sides of the same size.
    ///
    /// # Safety
    /// As for [`copy_raw`](RawQueue::copy_raw).
    unsafe fn submit_bytes(
        &self,
        operation: &'static str,
        to: *mut [u8],
        from: *const [u8],
        completion: Completion,
    ) -> Result<Option<Event>> {
        if to.len() != from.len() {
            return Err(Error::Length {
                operation,
                source_size: from.len(),
                destination_size: to.len(),
            });
        }
        // SAFETY: as for this function.
        unsafe { self.copy_raw(to.cast(), from.cast(), from.len(), completion) }
    }

    fn operation<T: Send + 'static>(
        &self,
        event: Option<Event>,
        operands: T,
    ) -> Result<Operation<T>> {
        let event = match event {
            Some(event) => event,
            None => self.complete_event()?,
        };
        Ok(Operation::new(&self.0, event, operands))
    }
}

impl Deref for Queue {
    type Target = RawQueue;

    fn deref(&self) -> &RawQueue {
        &self.0
    }
}
