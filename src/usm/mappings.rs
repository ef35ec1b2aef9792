//! The limit on a process's memory mappings.
//!
//! Intel's driver maps each allocation of shared memory over an address range that it has reserved, and does not check whether
//! Linux has done so. On a discrete GPU the memory would then have different bytes on the host and on the device. Linux
//! refuses a mapping beyond `vm.max_map_count`, so an allocation near that limit is an error before the driver is called.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// How many mappings an allocation needs at most: two for the memory, and two where it divides another one.
const PER_ALLOCATION: usize = 4;
/// How many mappings are left to the rest of the program.
const RESERVE: usize = 1024;

/// Counts down to the next reading of the system's figures.
#[derive(Debug)]
pub(crate) struct Mappings {
    /// How many allocations may be made before it.
    budget: AtomicUsize,
}

impl Mappings {
    pub(crate) const fn new() -> Self {
        Self {
            budget: AtomicUsize::new(0),
        }
    }

    /// Checks that the process may have the mappings of another allocation. Where the system does not report them, every
    /// allocation may be made.
    ///
    /// # Errors
    /// [`Error::TooManyMappings`].
    pub(crate) fn check(&self) -> Result<()> {
        self.check_in(Path::new("/proc"))
    }

    fn check_in(&self, proc: &Path) -> Result<()> {
        let spend = |budget: usize| budget.checked_sub(1);
        let spent = self
            .budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        if spent.is_ok() {
            return Ok(());
        }
        let Some((used, limit)) = read(proc) else {
            return Ok(());
        };
        let left = limit.saturating_sub(used).saturating_sub(RESERVE) / PER_ALLOCATION;
        if left == 0 {
            return Err(Error::TooManyMappings { used, limit });
        }
        // A half, as the rest of the program makes mappings meanwhile.
        self.budget.store(left / 2, Ordering::Relaxed);
        Ok(())
    }
}

/// How many mappings the process has, and may have.
fn read(proc: &Path) -> Option<(usize, usize)> {
    let limit = fs::read_to_string(proc.join("sys/vm/max_map_count")).ok()?;
    let maps = fs::read(proc.join("self/maps")).ok()?;
    let used = maps.iter().filter(|&&byte| byte == b'\n').count();
    Some((used, limit.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A process with so many mappings of at most 10000.
    fn write(proc: &Path, used: usize) {
        for folder in ["sys/vm", "self"] {
            fs::create_dir_all(proc.join(folder)).unwrap();
        }
        fs::write(proc.join("sys/vm/max_map_count"), "10000\n").unwrap();
        fs::write(proc.join("self/maps"), "a mapping\n".repeat(used)).unwrap();
    }

    #[test]
    fn allocations_end_before_the_limit_however_fast_they_come() {
        let proc = tempfile::tempdir().unwrap();
        let (mappings, mut used, mut made) = (Mappings::new(), 100, 0);
        loop {
            write(proc.path(), used);
            match mappings.check_in(proc.path()) {
                Ok(()) => (used, made) = (used + PER_ALLOCATION, made + 1),
                Err(Error::TooManyMappings { limit, used: seen }) => {
                    assert_eq!((limit, seen), (10_000, used));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let most = (10_000 - 100 - RESERVE) / PER_ALLOCATION;
        assert!((most - 1..=most).contains(&made), "{made} of {most}");
        // Once others are freed, there is room again.
        write(proc.path(), used - 100);
        mappings.check_in(proc.path()).unwrap();
    }

    #[test]
    fn the_figures_are_read_seldom_while_there_is_room() {
        let proc = tempfile::tempdir().unwrap();
        let mappings = Mappings::new();
        write(proc.path(), 0);
        mappings.check_in(proc.path()).unwrap();
        let budget = (10_000 - RESERVE) / PER_ALLOCATION / 2;
        write(proc.path(), 10_000);
        for _ in 0..budget {
            mappings.check_in(proc.path()).unwrap();
        }
        assert!(mappings.check_in(proc.path()).is_err());
    }

    #[test]
    fn without_figures_there_is_no_limit() {
        let mappings = Mappings::new();
        for _ in 0..10 {
            mappings.check_in(Path::new("/nowhere")).unwrap();
        }
        assert!(read(Path::new("/proc")).is_some());
    }
}
