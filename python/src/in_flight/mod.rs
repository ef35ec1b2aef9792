//! Operations in flight: the memory that they access, the operands that are retained for them, and waiting for them.

mod reclaimer;
mod table;
mod visible;
mod wait;

pub(crate) use reclaimer::{drain, reclaim, reclaim_later};
pub(crate) use table::{InFlight, any, using};
pub(crate) use visible::{Visible, retain};
pub(crate) use wait::{SLICE, wait};
