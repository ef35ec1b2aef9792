//! Operations for the history.

use std::task::Poll;
use std::time::{Duration, Instant};

use super::RawQueue;
use crate::error::Result;
use crate::event::Event;
use crate::history::{self, Execution, InFlight, Submission};

/// An operation that was submitted after `before`.
struct Timed {
    event: Event,
    before: Instant,
}

impl InFlight for Timed {
    fn execution(&self) -> Poll<Option<Execution>> {
        match self.event.is_complete() {
            Ok(false) => Poll::Pending,
            // The event of a failed submission, and those of a lost device, have no times.
            complete => Poll::Ready(complete.and_then(|_| self.times()).ok()),
        }
    }
}

impl Timed {
    fn times(&self) -> Result<Execution> {
        let timing = self.event.timing()?;
        let before = self.event.device_time(self.before)?;
        Ok(Execution {
            delay: Duration::from_nanos(timing.start.saturating_sub(before)),
            duration: timing.duration(),
        })
    }
}

impl RawQueue {
    /// Has the history record an operation that was submitted after `before` and signals `event`.
    pub(super) fn record(&self, name: &'static str, size: usize, before: Instant, event: &Event) {
        let Ok(list) = self.list() else { return };
        history::submitted(Submission {
            name,
            size,
            device: self.device().handle().addr(),
            queue: list.number,
            number: event.number_in(&list.events).unwrap_or_default(),
            time: before,
            in_flight: Box::new(Timed {
                event: event.clone(),
                before,
            }),
        });
    }
}
