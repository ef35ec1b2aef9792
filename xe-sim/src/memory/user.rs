//! The program's own memory, as the kernel reaches it: an address that is not mapped is an error, never a signal.

use libc::iovec;

fn vector(address: u64, length: usize) -> iovec {
    iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    }
}

/// Reads from the program's memory. False where it is not readable.
pub(crate) fn read_user(address: u64, bytes: &mut [u8]) -> bool {
    let local = vector(bytes.as_mut_ptr() as u64, bytes.len());
    let remote = vector(address, bytes.len());
    // SAFETY: `local` is `bytes`, and the kernel checks `remote`.
    let done = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    done == bytes.len() as isize
}

/// Writes into the program's memory. False where it is not writable.
pub(crate) fn write_user(address: u64, bytes: &[u8]) -> bool {
    let local = vector(bytes.as_ptr() as u64, bytes.len());
    let remote = vector(address, bytes.len());
    // SAFETY: `local` is `bytes`, which is only read, and the kernel checks `remote`.
    let done = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
    done == bytes.len() as isize
}
