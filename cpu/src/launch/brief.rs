//! Brief launches, which a thread that waits executes by itself.
//!
//! To hand a launch over to OpenCL's workers takes longer than a small kernel: a worker is woken, and the lock of its queue
//! moves between processors. Which kernels are small is measured; one with a single group is tried.

use std::sync::Arc;

use level_zero_sys as sys;

use super::Launch;
use crate::abi::result::ZeResult;
use crate::check;
use crate::opencl;
use crate::system::{clock, processor, stack};

/// The longest time in nanoseconds that a brief launch is expected to take on one thread. With several processors, workers are
/// not faster for less.
const LONGEST: u64 = 10_000 * clock::SLOWDOWN;

impl Launch {
    /// The time in nanoseconds that it is expected to take on one thread, if it is brief.
    pub(super) fn expected_time(&self) -> Option<u64> {
        if self.is_large() || check::is_on() || !self.kernel.is_executable() {
            return None;
        }
        let groups = self.group_count();
        let time = match self.kernel.group_time.of(groups) {
            None if groups == 1 => opencl::OVERHEAD,
            time => time?,
        };
        if time > LONGEST {
            return None;
        }
        stack::reserve(self.stack_size);
        Some(time)
    }

    /// Executes it on the calling thread.
    pub(super) fn execute_here(&self) -> ZeResult {
        let values = self.values()?;
        let started = clock::now();
        // SAFETY: the command's pins keep the memory of the arguments alive; the caller vouches for other memory.
        let outcome = unsafe { self.kernel.execute(&self.range, &values) };
        let time = clock::now().saturating_sub(started);
        self.kernel.group_time.add(self.group_count(), time);
        outcome.map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN)
    }

    /// How many groups it has.
    fn group_count(&self) -> u64 {
        self.groups().into_iter().map(u64::from).product()
    }
}

/// Measures a launch that OpenCL's workers execute.
pub struct Measured {
    kernel: Arc<opencl::Kernel>,
    groups: u64,
}

impl Measured {
    /// For `launch`, unless it is large.
    pub fn new(launch: &Launch) -> Option<Self> {
        (!launch.is_large()).then(|| Self {
            kernel: Arc::clone(&launch.kernel),
            groups: launch.group_count(),
        })
    }

    /// The launch took this long. All workers may have executed it.
    pub fn took(&self, times: opencl::Times) {
        let workers = self.groups.min(processor::count() as u64);
        let time = times.end.saturating_sub(times.start);
        self.kernel
            .group_time
            .add_groups(self.groups, time.saturating_mul(workers));
    }
}
