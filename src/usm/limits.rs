//! The maximum size of an allocation. Drivers do not check it: with relaxed limits, Intel's driver aborts the process for
//! 2^46 bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use zeusm_process::memory::Memory;

use super::UsmKind;
use crate::device::Device;
use crate::error::{Error, Result};

/// Returns an error for sizes beyond the memory of the machine or the device.
///
/// # Errors
/// [`Error::TooLarge`].
pub(crate) fn check(device: &Device, kind: UsmKind, size: usize) -> Result<()> {
    if kind != UsmKind::Host {
        at_most(size, device.memory_size(), "memory of the device")?;
    }
    if kind != UsmKind::Device {
        let of = "memory and swap space that this process may use";
        at_most(size, host_limit(size as u64), of)?;
    }
    Ok(())
}

fn at_most(size: usize, limit: u64, of: &'static str) -> Result<()> {
    if size as u64 > limit {
        return Err(Error::TooLarge { size, limit, of });
    }
    Ok(())
}

/// The host memory that this process may use. It is read again only for sizes above the last value.
fn host_limit(size: u64) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let last = LAST.load(Ordering::Relaxed);
    if size <= last {
        return last;
    }
    let limit = Memory::now().with_swap;
    LAST.store(limit, Ordering::Relaxed);
    limit
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_size_up_to_the_limit_is_allowed() {
        assert!(at_most(4096, 4096, "memory").is_ok());
        let error = at_most(4097, 4096, "memory").unwrap_err().to_string();
        assert!(
            error.contains("(4097 bytes) are more than the memory, 4 KiB (4096 bytes)"),
            "{error}"
        );
    }
}
