//! Kernel-style access to user memory: an unmapped address is an error instead of a signal.

use libc::iovec;

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
