//! The queue for typed memory, which checks the operands of each operation.

use std::ops::Deref;

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
        same_length("copy", source.size(), destination.size())?;
        self.check("copy", destination)?;
        self.check("copy", source)?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: both operands are checked, and borrowed until the copy is complete, the destination exclusively.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.size(), Completion::SpinWait) }?;
        self.end(event, "copy", source.size())
    }

    /// Copies `source` to the memory, which must have the same size, and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn write<D: Kind>(&self, destination: &mut Memory<D>, source: &[u8]) -> Result<()> {
        same_length("write", source.len(), destination.size())?;
        self.check("write", destination)?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: the memory is checked, and both operands are borrowed until the copy is complete, the destination
        // exclusively.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.len(), Completion::SpinWait) }?;
        self.end(event, "write", source.len())
    }

    /// Copies the memory to `destination`, which must have the same size, and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn read<S: Kind>(&self, source: &Memory<S>, destination: &mut [u8]) -> Result<()> {
        same_length("read", source.size(), destination.len())?;
        self.check("read", source)?;
        let (to, from) = (destination.as_mut_ptr(), source.as_ptr());
        // SAFETY: the memory is checked, and both operands are borrowed until the copy is complete, the destination
        // exclusively.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.size(), Completion::SpinWait) }?;
        self.end(event, "read", source.size())
    }

    /// Sets every byte of the memory to `value` and waits.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn fill<D: Kind>(&self, destination: &mut Memory<D>, value: u8) -> Result<()> {
        self.check("fill", destination)?;
        let (to, size) = (destination.as_ptr().cast_mut(), destination.size());
        // SAFETY: the memory is checked, and borrowed exclusively until the fill is complete.
        let event = unsafe { self.fill_raw(to.cast(), value, size, Completion::SpinWait) }?;
        self.end(event, "fill", size)
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
        same_length("copy", source.size(), destination.size())?;
        self.check("copy", &destination)?;
        self.check("copy", &source)?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: both operands are checked, and the operation owns them until it is complete.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.size(), Completion::Event) }?;
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
        same_length("write", source.len(), destination.size())?;
        self.check("write", &destination)?;
        let (to, from) = (destination.as_ptr().cast_mut(), source.as_ptr());
        // SAFETY: the operation owns both operands until it is complete; moving a `Vec` does not move its bytes.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.len(), Completion::Event) }?;
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
        same_length("read", source.size(), destination.len())?;
        self.check("read", &source)?;
        let (to, from) = (destination.as_mut_ptr(), source.as_ptr());
        // SAFETY: as for `write_async`.
        let event =
            unsafe { self.copy_raw(to.cast(), from.cast(), source.size(), Completion::Event) }?;
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
        self.check("fill", &destination)?;
        let (to, size) = (destination.as_ptr().cast_mut(), destination.size());
        // SAFETY: the memory is checked, and the operation owns it until it is complete.
        let event = unsafe { self.fill_raw(to.cast(), value, size, Completion::Event) }?;
        self.operation(event, destination)
    }

    /// Checks that the queue's device can access the memory.
    fn check<K: Kind>(&self, operation: &'static str, memory: &Memory<K>) -> Result<()> {
        if memory.size() == 0 {
            return Ok(());
        }
        if memory.context() != self.context() {
            return Err(Error::OtherContext {
                operation,
                kind: K::KIND,
                size: memory.size(),
            });
        }
        let (here, there) = (self.device(), memory.device());
        if is_accessible(K::KIND, here == there, || here.can_access(there))? {
            return Ok(());
        }
        Err(Error::NoPeerAccess {
            operation,
            kind: K::KIND,
            size: memory.size(),
            device: here.to_string(),
            memory_device: there.to_string(),
        })
    }

    fn end(&self, event: Option<Event>, operation: &'static str, size: usize) -> Result<()> {
        event.map_or(Ok(()), |event| self.finish(&event, operation, size))
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

/// Whether a device can access memory of this kind, given whether that is on the same device.
fn is_accessible(
    kind: UsmKind,
    on_same_device: bool,
    has_peer_access: impl FnOnce() -> Result<bool>,
) -> Result<bool> {
    Ok(kind == UsmKind::Host || on_same_device || has_peer_access()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn memory_of_another_device_needs_peer_access_unless_it_is_the_hosts() {
        for (kind, on_same_device, peer_access, expected) in [
            (UsmKind::Host, false, false, true),
            (UsmKind::Device, true, false, true),
            (UsmKind::Shared, true, false, true),
            (UsmKind::Device, false, true, true),
            (UsmKind::Device, false, false, false),
            (UsmKind::Shared, false, false, false),
        ] {
            let accessible = is_accessible(kind, on_same_device, || Ok(peer_access));
            assert_eq!(
                accessible.unwrap(),
                expected,
                "{kind}, same device: {on_same_device}"
            );
        }
    }
}
