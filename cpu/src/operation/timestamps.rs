//! Writing timestamps to memory.

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::smallvec;

use crate::abi::result::ZeResult;
use crate::check::Uses;
use crate::engine::{Operation, Pins};
use crate::event::Event;
use crate::memory::Span;
use crate::system::clock;

/// Writes the device's clock.
#[derive(Debug)]
pub struct WriteTimestamp(pub Span);

impl Operation for WriteTimestamp {
    fn pin(&self) -> ZeResult<Pins> {
        Ok(self.0.pin()?.into_iter().collect())
    }

    fn uses(&self) -> Uses {
        Uses {
            what: "a write of a timestamp".to_owned(),
            writes: smallvec![self.0.range()],
            ..Uses::default()
        }
    }

    fn run(&self, _part: usize) -> ZeResult {
        // SAFETY: the span has the length of a timestamp, and the caller of the append vouches for it.
        unsafe { (self.0.address() as *mut u64).write_unaligned(clock::now()) };
        Ok(())
    }
}

/// Writes the kernel timestamps of events, one after another or at `offsets` in bytes.
pub struct QueryTimestamps {
    /// Whose timestamps.
    pub events: Vec<Arc<Event>>,
    /// Where they go.
    pub to: Span,
    /// An array of as many `size_t`, read when the operation runs.
    pub offsets: Option<Span>,
}

impl Operation for QueryTimestamps {
    fn pin(&self) -> ZeResult<Pins> {
        let offsets = self.offsets.as_ref().map_or(Ok(None), Span::pin)?;
        Ok([self.to.pin()?, offsets].into_iter().flatten().collect())
    }

    fn run(&self, _part: usize) -> ZeResult {
        for (index, event) in self.events.iter().enumerate() {
            let offset = match &self.offsets {
                None => index * size_of::<sys::ze_kernel_timestamp_result_t>(),
                // SAFETY: the span has one offset for each event; the caller of the append vouches for it.
                Some(offsets) => unsafe {
                    (offsets.address() as *const usize)
                        .add(index)
                        .read_unaligned()
                },
            };
            let place = (self.to.address() + offset) as *mut sys::ze_kernel_timestamp_result_t;
            // SAFETY: the caller of the append vouches for the destination.
            unsafe { place.write_unaligned(event.timestamp()?) };
        }
        Ok(())
    }
}
