//! Waiting for an event without the GIL.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::interpreter::detach;
use zeusm::Event;

/// The interval at which a wait lets Python handle signals, Ctrl-C for instance.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Releases the GIL and waits for the event with the timeout `limit`; returns whether the event is complete. The handlers of signals
/// run meanwhile if `signals`.
///
/// # Errors
/// The exception of a signal handler, such as `KeyboardInterrupt`; `LevelZeroError` when the device is lost.
pub(crate) fn wait(
    py: Python<'_>,
    event: &Event,
    limit: Option<Duration>,
    signals: bool,
) -> PyResult<bool> {
    // Releasing and reacquiring the GIL costs more than a small operation.
    if matches!(event.is_complete(), Ok(true)) {
        return Ok(true);
    }
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        if detach(py, || event.wait(Some(slice))).or_raise()? {
            return Ok(true);
        }
        if left.is_some_and(|left| left <= slice) {
            return Ok(false);
        }
        if signals {
            py.check_signals()?;
        }
    }
}
