//! Kernel-style access to user memory: an unmapped address is an error instead of a signal.

use libc::iovec;
use rustix::io::{Errno, Result};
use zeusm_process::maps::{self, Mapping};

fn vector(address: u64, length: usize) -> iovec {
    iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    }
}

/// Reads user memory. Returns `false` if the range is not readable.
pub(crate) fn read_user(address: u64, bytes: &mut [u8]) -> bool {
    let local = vector(bytes.as_mut_ptr() as u64, bytes.len());
    let remote = vector(address, bytes.len());
    // SAFETY: `local` is `bytes`, and the kernel checks `remote`.
    let done = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    done == bytes.len() as isize
}

/// Writes user memory. Returns `false` if the range is not writable.
pub(crate) fn write_user(address: u64, bytes: &[u8]) -> bool {
    let local = vector(bytes.as_ptr() as u64, bytes.len());
    let remote = vector(address, bytes.len());
    // SAFETY: `local` is `bytes`, which is only read, and the kernel checks `remote`.
    let done = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
    done == bytes.len() as isize
}

/// Checks that user memory can be bound: `EFAULT` for memory that is unmapped or not readable, and with `writes` `EPERM` for
/// memory that is read-only. The error is that of the lowest such address, as in the kernel.
pub(crate) fn check_user(address: u64, length: u64, writes: bool) -> Result<()> {
    check_in(&maps::mappings(), address, length, writes)
}

/// Like [`check_user`], with the mappings in the order of their addresses.
fn check_in(mappings: &[Mapping], address: u64, length: u64, writes: bool) -> Result<()> {
    let Some(end) = address.checked_add(length) else {
        return Err(Errno::FAULT);
    };
    let mut at = address;
    for mapping in mappings {
        let (start, end_of_it) = (mapping.range.start as u64, mapping.range.end as u64);
        if end_of_it <= at {
            continue;
        }
        if at >= end || start > at {
            break;
        }
        if !mapping.is_readable {
            return Err(Errno::FAULT);
        }
        if writes && !mapping.is_writable {
            return Err(Errno::PERM);
        }
        at = end_of_it;
    }
    if at < end {
        return Err(Errno::FAULT);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mapped_memory_with_the_right_protection_can_be_bound() {
        let maps = "1000-3000 rw-p 00000000 00:00 0\n\
            3000-4000 r--p 00000000 08:01 42 /a file\n\
            5000-6000 rw-s 00000000 00:00 0\n\
            6000-7000 ---p 00000000 00:00 0\n";
        let maps: Vec<Mapping> = maps
            .lines()
            .filter_map(|line| Mapping::parse(line.as_bytes()))
            .collect();
        let check = |start, end, writes| check_in(&maps, start, end - start, writes).err();
        for (start, end, writes, error) in [
            (0x1000, 0x3000, true, None),
            (0x2000, 0x4000, false, None),
            (0x2000, 0x4000, true, Some(Errno::PERM)),
            (0x3000, 0x5000, true, Some(Errno::PERM)),
            (0x3000, 0x5000, false, Some(Errno::FAULT)),
            (0x0, 0x2000, false, Some(Errno::FAULT)),
            (0x5000, 0x6000, true, None),
            (0x5000, 0x7000, false, Some(Errno::FAULT)),
            (0x9000, 0xa000, false, Some(Errno::FAULT)),
        ] {
            assert_eq!(check(start, end, writes), error, "{start:#x} to {end:#x}");
        }
        let own = [0u8; 64];
        assert!(check_user(own.as_ptr() as u64, 64, true).is_ok());
        assert!(check_user(u64::MAX, 64, true).is_err());
    }
}
