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

/// Checks that the process may have the mappings of another allocation. Where the system does not report them, every allocation
/// may be made. `budget` is the number of those that may be made before the next reading of the system's figures in `proc`.
///
/// # Errors
/// [`Error::TooManyMappings`].
pub(crate) fn check(budget: &AtomicUsize, proc: &Path) -> Result<()> {
    let spend = |budget: usize| budget.checked_sub(1);
    let spent = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
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
    budget.store(left / 2, Ordering::Relaxed);
    Ok(())
}

/// How many mappings the process has, and may have.
fn read(proc: &Path) -> Option<(usize, usize)> {
    let limit = fs::read_to_string(proc.join("sys/vm/max_map_count")).ok()?;
    let maps = fs::read(proc.join("self/maps")).ok()?;
    let used = maps.iter().filter(|&&byte| byte == b'\n').count();
    Some((used, limit.trim().parse().ok()?))
}

#[cfg(test)]
mod tests;
