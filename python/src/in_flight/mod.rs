//! Operations in flight: which memory they use, what they keep alive, and how a thread waits for them.

mod reclaimer;
mod retain;
mod table;
mod wait;

pub(crate) use reclaimer::{drain_at_exit, reclaim_later};
pub(crate) use retain::retain;
pub(crate) use table::using;
pub(crate) use wait::{HostError, SLICE, check, wait};
