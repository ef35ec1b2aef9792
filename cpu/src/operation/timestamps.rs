//! Writing timestamps to memory.

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::smallvec;

use crate::abi::result::ZeResult;
use crate::check::Uses;
use crate::engine::{Operation, Pins, Signal};
use crate::event::{Event, timestamp};
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

/// Writes the kernel timestamps of events, one after another or at offsets in bytes.
pub struct QueryTimestamps {
    events: Vec<Arc<Event>>,
    /// Their signals at the submission, none before. A counter-based event may have another one, a later command's, when the
    /// query runs.
    signals: Option<Vec<Arc<Signal>>>,
    /// Where they go.
    to: Span,
    /// An array of as many `size_t`, read when the operation runs.
    offsets: Option<Span>,
}

impl QueryTimestamps {
    /// A query that writes to `to`.
    pub fn new(events: Vec<Arc<Event>>, to: Span, offsets: Option<Span>) -> Self {
        Self {
            events,
            signals: None,
            to,
            offsets,
        }
    }

    /// The place of a result.
    fn place(&self, index: usize) -> *mut sys::ze_kernel_timestamp_result_t {
        let offset = match &self.offsets {
            None => index * size_of::<sys::ze_kernel_timestamp_result_t>(),
            // SAFETY: the span has one offset for each event; the caller of the append vouches for it.
            Some(offsets) => unsafe {
                (offsets.address() as *const usize)
                    .add(index)
                    .read_unaligned()
            },
        };
        (self.to.address() + offset) as *mut sys::ze_kernel_timestamp_result_t
    }
}

impl Operation for QueryTimestamps {
    fn pin(&self) -> ZeResult<Pins> {
        let offsets = self.offsets.as_ref().map_or(Ok(None), Span::pin)?;
        Ok([self.to.pin()?, offsets].into_iter().flatten().collect())
    }

    /// Where offsets tell the places, only the first one is known.
    fn uses(&self) -> Uses {
        let what = "a query of timestamps".to_owned();
        let (to, count) = (self.to.address(), self.events.len());
        match &self.offsets {
            None => Uses {
                what,
                writes: smallvec![to..to + count * size_of::<sys::ze_kernel_timestamp_result_t>()],
                ..Uses::default()
            },
            Some(offsets) => Uses {
                what,
                reads: smallvec![offsets.range()],
                pointers: smallvec![to],
                ..Uses::default()
            },
        }
    }

    fn at_submission(&self) -> Option<Arc<dyn Operation>> {
        self.signals.is_none().then(|| {
            Arc::new(Self {
                events: self.events.clone(),
                signals: Some(self.events.iter().map(|event| event.signal()).collect()),
                to: self.to.clone(),
                offsets: self.offsets.clone(),
            }) as Arc<dyn Operation>
        })
    }

    fn run(&self, _part: usize) -> ZeResult {
        for (index, signal) in self.signals.iter().flatten().enumerate() {
            // Nothing orders the query behind what sets the signal.
            let unset = sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
            let timestamp = timestamp(signal).ok_or(unset)?;
            // SAFETY: the caller of the append vouches for the destination.
            unsafe { self.place(index).write_unaligned(timestamp) };
        }
        Ok(())
    }
}
