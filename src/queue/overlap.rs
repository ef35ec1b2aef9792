//! Copies of ranges that may overlap, then through staging memory.

use std::ffi::c_void;

use super::raw::RawQueue;
use super::submission::Completion;
use crate::error::Result;
use crate::event::Event;
use crate::kind::UsmKind;
use crate::usm::Allocation;

/// The most bytes of device memory that such a copy takes.
const STAGING: usize = 16 << 20;

impl RawQueue {
    /// Submits a copy; `None` when it is complete already. The ranges may overlap: the copy then goes through at most 16 MiB of
    /// device memory in several operations, of which the event is the last one's. If one of these cannot be submitted, this
    /// waits for those before it.
    ///
    /// # Errors
    /// [`Error::Operation`](crate::Error::Operation) with Level Zero's result; for ranges that overlap, the error of the allocation.
    ///
    /// # Safety
    /// Both ranges must be USM of this context or host memory, and be valid and without conflicting accesses until the event
    /// is complete ([`retain`](Self::retain) can hold their owners).
    pub unsafe fn copy_raw(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
        completion: Completion,
    ) -> Result<Option<Event>> {
        if overlap(destination.addr(), source.addr(), size) {
            // SAFETY: as for this function.
            return unsafe { self.copy_overlapping(destination, source, size) };
        }
        // SAFETY: as for this function.
        unsafe { self.copy_disjoint("copy", destination, source, size, completion, None) }
    }

    /// Submits a copy between ranges that overlap: a GPU copies the bytes of one operation in any order. The staging memory is
    /// retained until the last operation is complete.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw).
    unsafe fn copy_overlapping(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        let length = size.min(STAGING);
        let staging = Allocation::new(self.context(), self.device(), UsmKind::Device, length, 0)?;
        let between = staging.as_ptr();
        let mut last: Option<Event> = None;
        let mut parts = parts(destination.addr(), source.addr(), size, STAGING);
        let submitted = parts.try_for_each(|(offset, length)| {
            // Wrapping offsets, as device memory is no allocated object in Rust's sense.
            let source = source.wrapping_byte_add(offset);
            let destination = destination.wrapping_byte_add(offset);
            for (to, from) in [(between, source), (destination, between.cast_const())] {
                // SAFETY: the caller guarantees the validity of both ranges, and the staging memory is retained.
                last = unsafe {
                    self.copy_disjoint("copy", to, from, length, Completion::Event, last.clone())
                }?;
            }
            Ok(())
        });
        let Some(event) = &last else {
            return submitted.map(|()| None);
        };
        if submitted.is_err() {
            // The caller owns the operands again.
            let _ = self.drain(event);
        }
        self.retain(event, staging);
        submitted.map(|()| last)
    }
}

/// Whether a copy of `size` bytes between these addresses is one between different ranges that overlap.
#[must_use]
pub fn overlap(destination: usize, source: usize, size: usize) -> bool {
    (1..size).contains(&destination.abs_diff(source))
}

/// The offsets and lengths of the parts of a copy, in an order in which none overwrites the source of a later one.
pub(super) fn parts(
    destination: usize,
    source: usize,
    size: usize,
    most: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let count = size.div_ceil(most);
    (0..count).map(move |number| {
        let backwards = destination > source;
        let number = if backwards {
            count - 1 - number
        } else {
            number
        };
        let offset = number * most;
        (offset, most.min(size - offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_the_order_of_the_distance() {
        let all =
            |destination, source, size| parts(destination, source, size, 4).collect::<Vec<_>>();
        assert_eq!(all(0, 1, 10), [(0, 4), (4, 4), (8, 2)]);
        assert_eq!(all(1, 0, 10), [(8, 2), (4, 4), (0, 4)]);
        assert_eq!(all(0, 9, 4), [(0, 4)]);
        assert_eq!(all(9, 0, 0), []);
    }
}
