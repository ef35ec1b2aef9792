//! The memory of a process on Windows.

use std::path::Path;

use windows_sys::Win32::System::ProcessStatus::{K32GetPerformanceInfo, PERFORMANCE_INFORMATION};

use super::amount::{Memory, UNLIMITED};
use super::bound::Bound;

impl Memory {
    /// The memory of this process. Swap space is that of the page files. Available is what the system still grants: all that it
    /// has granted is taken, touched or not.
    #[must_use]
    pub fn now() -> Self {
        let mut about = PERFORMANCE_INFORMATION::default();
        let length = size_of::<PERFORMANCE_INFORMATION>() as u32;
        // SAFETY: the structure has that length, and is written.
        if unsafe { K32GetPerformanceInfo(&raw mut about, length) } == 0 {
            return UNLIMITED;
        }
        let bytes = |pages: usize| (pages as u64).saturating_mul(about.PageSize as u64);
        Self {
            total: bytes(about.PhysicalTotal),
            with_swap: bytes(about.CommitLimit),
            available: bytes(about.CommitLimit.saturating_sub(about.CommitTotal)),
        }
    }
}

/// The limit that control groups set: Windows has none.
#[must_use]
pub fn group_limit(_root: &Path) -> Option<u64> {
    None
}

/// Other limits of the process: Windows has none that are told.
pub fn resources() -> [Bound; 0] {
    []
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory_and_not_all_of_it_is_in_use() {
        let Memory {
            total,
            with_swap,
            available,
        } = Memory::now();
        assert!((1 << 20..u64::MAX).contains(&total));
        assert!(with_swap >= total && (1 << 20..=with_swap).contains(&available));
    }
}
