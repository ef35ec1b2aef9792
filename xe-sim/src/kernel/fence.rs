//! User fences: 64-bit values in user memory that the kernel writes on completion and waits for.

use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, Result};

use super::device::Device;
use crate::engine::UserFence;
use crate::memory::read_user;
use crate::report::not_simulated;
use crate::uapi::*;

/// The number of polls before the thread sleeps for [`PAUSE`] between polls.
const SPINS: u32 = 50;
const PAUSE: Duration = Duration::from_micros(50);

/// The user fences that a request's syncs signal on completion.
///
/// # Safety
/// `syncs` points to `count` structures, or `count` is zero.
pub(super) unsafe fn signals(syncs: u64, count: u32) -> Vec<UserFence> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller guarantees an array of `count` structures.
    let syncs = unsafe { slice::from_raw_parts(syncs as *const drm_xe_sync, count as usize) };
    let fence = |sync: &drm_xe_sync| {
        if sync.type_ != DRM_XE_SYNC_TYPE_USER_FENCE || sync.flags & DRM_XE_SYNC_FLAG_SIGNAL == 0 {
            not_simulated(format_args!(
                "a sync of type {} with flags {:#x}",
                sync.type_, sync.flags
            ));
        }
        UserFence {
            // SAFETY: for a sync of this type the union holds an address.
            address: unsafe { sync.__bindgen_anon_1.addr },
            value: sync.timeline_value,
        }
    };
    syncs.iter().map(fence).collect()
}

pub(super) fn wait(device: &Device, argument: &mut drm_xe_wait_user_fence) -> Result<()> {
    let queue = match argument.exec_queue_id {
        0 => None,
        number => Some(device.queues.get(number)?),
    };
    let deadline = deadline(argument);
    let mut looks = 0;
    loop {
        if passed(argument)? {
            return Ok(());
        }
        if queue.as_ref().is_some_and(|queue| queue.is_banned()) {
            return Err(Errno::IO);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Errno::TIME);
        }
        looks += 1;
        if looks < SPINS {
            thread::yield_now();
        } else {
            thread::sleep(PAUSE);
        }
    }
}

/// The deadline of a wait; `None` for no timeout.
fn deadline(argument: &drm_xe_wait_user_fence) -> Option<Instant> {
    if argument.flags & DRM_XE_UFENCE_WAIT_FLAG_ABSTIME as u16 != 0 {
        not_simulated(format_args!(
            "DRM_IOCTL_XE_WAIT_USER_FENCE until a time of the clock"
        ));
    }
    let nanoseconds = u64::try_from(argument.timeout).ok()?;
    Instant::now().checked_add(Duration::from_nanos(nanoseconds))
}

fn passed(argument: &drm_xe_wait_user_fence) -> Result<bool> {
    let mut word = [0; 8];
    if !read_user(argument.addr, &mut word) {
        return Err(Errno::FAULT);
    }
    let word = u64::from_le_bytes(word) & argument.mask;
    let wanted = argument.value & argument.mask;
    Ok(match u32::from(argument.op) {
        DRM_XE_UFENCE_WAIT_OP_EQ => word == wanted,
        DRM_XE_UFENCE_WAIT_OP_NEQ => word != wanted,
        DRM_XE_UFENCE_WAIT_OP_GT => word > wanted,
        DRM_XE_UFENCE_WAIT_OP_GTE => word >= wanted,
        DRM_XE_UFENCE_WAIT_OP_LT => word < wanted,
        DRM_XE_UFENCE_WAIT_OP_LTE => word <= wanted,
        _ => return Err(Errno::INVAL),
    })
}
