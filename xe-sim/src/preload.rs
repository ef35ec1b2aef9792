//! The functions that replace those of the C library: calls on a simulated device node are handled by the simulator, all
//! others are forwarded to the kernel.

use std::ffi::{c_int, c_long, c_ulong, c_void};

use rustix::io::Errno;

use crate::kernel;
use crate::machine::{self, Slot};

/// The ioctl type of DRM drivers.
const DRM_TYPE: c_ulong = b'd' as c_ulong;

/// The simulated GPU whose device node a descriptor refers to.
fn gpu(descriptor: c_int) -> Option<&'static Slot> {
    let machine = kernel::machine()?;
    // SAFETY: all zeroes is a valid value of this C structure.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writing.
    let failed = unsafe { libc::fstat(descriptor, &raw mut stat) } != 0;
    if failed || libc::major(stat.st_rdev) != machine::MAJOR {
        return None;
    }
    let minor = libc::minor(stat.st_rdev);
    machine.slots.iter().find(|slot| slot.minor == minor)
}

fn refuse(error: Errno) {
    // SAFETY: the function returns the address of the thread's errno.
    unsafe { *libc::__errno_location() = error.raw_os_error() };
}

/// `ioctl` of the C library.
///
/// # Safety
/// `argument` is valid for the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(
    descriptor: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    if request >> 8 & 0xff == DRM_TYPE
        && let Some(slot) = gpu(descriptor)
    {
        // SAFETY: as for this function.
        return match unsafe { kernel::request(slot, request as u32, argument) } {
            Ok(()) => 0,
            Err(error) => {
                refuse(error);
                -1
            }
        };
    }
    // SAFETY: as for this function.
    unsafe { libc::syscall(libc::SYS_ioctl, descriptor, request, argument) as c_int }
}

/// `mmap` of the C library.
///
/// # Safety
/// As that function's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: c_long,
) -> *mut c_void {
    let target = if kernel::is_map_offset(offset as u64)
        && let Some(slot) = gpu(descriptor)
    {
        kernel::map_target(slot, offset as u64, flags)
    } else {
        Ok((descriptor, flags, offset))
    };
    let (descriptor, flags, offset) = match target {
        Ok(target) => target,
        Err(error) => {
            refuse(error);
            return libc::MAP_FAILED;
        }
    };
    // SAFETY: as for this function; a buffer's descriptor is open while its handle is in the table.
    unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length,
            protection,
            flags,
            descriptor,
            offset,
        ) as *mut c_void
    }
}

/// `mmap64` of the C library, identical to `mmap` on 64-bit systems.
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: c_long,
) -> *mut c_void {
    // SAFETY: as for this function.
    unsafe { mmap(address, length, protection, flags, descriptor, offset) }
}
