//! The buffers of a memory object that others use, such as memoryviews.

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

use crate::interpreter::FREE_THREADED;
use crate::pins::{Closed, Pins};

/// Counts the first buffers of an object; [`Pins`] have the rest.
///
/// The interpreter requests and releases buffers with the GIL held, and an object is closed with it held. So the count needs no
/// atomic addition, of which two take a tenth of the time of a memoryview. Without a GIL, `Pins` have all.
#[derive(Default)]
pub(crate) struct Views(AtomicU8);

impl Views {
    /// Adds a buffer.
    ///
    /// # Errors
    /// [`Closed`] when the object is closed or being closed.
    pub(crate) fn acquire(&self, _py: Python<'_>, pins: &Pins) -> Result<(), Closed> {
        let views = self.0.load(Ordering::Relaxed);
        if views == u8::MAX || FREE_THREADED {
            return pins.acquire();
        }
        pins.check_open()?;
        self.0.store(views + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Releases a buffer. Which one does not matter, as the object can be closed without any only.
    pub(crate) fn release(&self, _py: Python<'_>, pins: &Pins) {
        match self.0.load(Ordering::Relaxed) {
            0 => pins.release(),
            views => self.0.store(views - 1, Ordering::Relaxed),
        }
    }

    /// The buffers that are counted here.
    pub(crate) fn count(&self, _py: Python<'_>) -> u32 {
        self.0.load(Ordering::Relaxed).into()
    }
}
