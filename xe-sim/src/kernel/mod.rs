//! The ioctl interface of the xe kernel driver.
//!
//! Structures and semantics: `drm/xe_drm.h` of the kernel. An unknown request aborts the process and is reported by number.

mod device;
mod exec;
mod fence;
mod gem;
mod query;
mod vm;

use std::ffi::{c_int, c_long, c_void};
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use rustix::io::{Errno, Result};
use zeusm_process::Local;

use crate::faults;
use crate::machine::{self, Machine, Slot};
use crate::report::{log, not_simulated, report_panics};
use crate::settings;
use crate::uapi::*;
use device::Device;

// Intel's driver tries the interface of i915 (`drm/i915_drm.h`) on a device whose version it cannot query, and the kernel
// refuses it. At the number of `DRM_IOCTL_I915_GETPARAM` the xe driver has `DRM_IOCTL_XE_EXEC_QUEUE_CREATE`; DRM extends the
// shorter structure by zeroes, so it names no address for its engines. The xe driver has none of the other numbers.
const I915_GETPARAM: u32 = 0xc010_6446;
/// From `DRM_I915_GEM_INIT` to `DRM_I915_GEM_CREATE_EXT`.
const OF_I915: RangeInclusive<u32> = 0x53..=0x7c;

/// The simulated machine, if one is configured.
pub(crate) fn machine() -> Option<&'static Machine> {
    static MACHINE: OnceLock<Option<&'static Machine>> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let name = settings::get(settings::MACHINE)?;
        report_panics();
        let found = machine::named(&name);
        Some(found.unwrap_or_else(|| not_simulated(format_args!("a machine named {name}"))))
    })
}

/// The device of this process in a slot. A forked child starts with new devices, because the parent's engine threads do not
/// exist in it.
fn device(slot: &'static Slot) -> &'static Device {
    static DEVICES: Local<Vec<Device>> = Local::new();
    let devices = DEVICES.get_or_init(|| {
        let slots = machine().map_or(&[][..], |machine| machine.slots);
        slots.iter().map(Device::new).collect()
    });
    match devices
        .iter()
        .find(|device| std::ptr::eq(device.slot, slot))
    {
        Some(device) => device,
        None => not_simulated(format_args!("a GPU at {}", slot.pci)),
    }
}

/// Executes one ioctl.
///
/// # Safety
/// `argument` points to the structure that belongs to the request.
pub(crate) unsafe fn request(
    slot: &'static Slot,
    request: u32,
    argument: *mut c_void,
) -> Result<()> {
    let device = device(slot);
    // One row per request: its number, its structure and its handler. The request number encodes the structure's size.
    macro_rules! answer {
        ($($request:ident($structure:ty) => $function:path),* $(,)?) => {
            match request {
                $($request => {
                    // SAFETY: the caller guarantees that the structure belongs to the request.
                    let argument = unsafe { &mut *argument.cast::<$structure>() };
                    named(device, &stringify!($request)["REQUEST_".len()..], || $function(device, argument))
                })*
                _ if request == I915_GETPARAM || OF_I915.contains(&(request & 0xff)) => {
                    named(device, "a request of i915", || Err(Errno::INVAL))
                }
                _ => not_simulated(format_args!("ioctl {:#04x} ({request:#x})", request & 0xff)),
            }
        };
    }
    answer! {
        REQUEST_DRM_IOCTL_VERSION(drm_version) => query::version,
        REQUEST_DRM_IOCTL_GEM_CLOSE(drm_gem_close) => gem::close,
        REQUEST_DRM_IOCTL_PRIME_HANDLE_TO_FD(drm_prime_handle) => gem::export,
        REQUEST_DRM_IOCTL_PRIME_FD_TO_HANDLE(drm_prime_handle) => gem::import,
        REQUEST_DRM_IOCTL_XE_DEVICE_QUERY(drm_xe_device_query) => query::device,
        REQUEST_DRM_IOCTL_XE_GEM_CREATE(drm_xe_gem_create) => gem::create,
        REQUEST_DRM_IOCTL_XE_GEM_MMAP_OFFSET(drm_xe_gem_mmap_offset) => gem::map_offset,
        REQUEST_DRM_IOCTL_XE_VM_CREATE(drm_xe_vm_create) => vm::create,
        REQUEST_DRM_IOCTL_XE_VM_DESTROY(drm_xe_vm_destroy) => vm::destroy,
        REQUEST_DRM_IOCTL_XE_VM_BIND(drm_xe_vm_bind) => vm::bind,
        REQUEST_DRM_IOCTL_XE_EXEC_QUEUE_CREATE(drm_xe_exec_queue_create) => exec::create,
        REQUEST_DRM_IOCTL_XE_EXEC_QUEUE_DESTROY(drm_xe_exec_queue_destroy) => exec::destroy,
        REQUEST_DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY(drm_xe_exec_queue_get_property) => exec::property,
        REQUEST_DRM_IOCTL_XE_EXEC(drm_xe_exec) => exec::exec,
        REQUEST_DRM_IOCTL_XE_WAIT_USER_FENCE(drm_xe_wait_user_fence) => fence::wait,
    }
}

fn named<T: Debug>(
    device: &Device,
    name: &'static str,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let answer = match faults::fails(name).or_else(|| device.refusal(name)) {
        Some(error) => Err(error),
        None => run(),
    };
    log(format_args!("{} {name}: {answer:?}", device.slot.pci));
    answer
}

pub(crate) use gem::is_map_offset;

/// Translates a mapping of a device node: the descriptor, flags and offset to map instead. Its name for fault injection is
/// [`faults::MAPPING`].
pub(crate) fn map_target(
    slot: &'static Slot,
    offset: u64,
    flags: c_int,
) -> Result<(c_int, c_int, c_long)> {
    let device = device(slot);
    named(device, faults::MAPPING, || {
        gem::map_target(device, offset, flags)
    })
}
