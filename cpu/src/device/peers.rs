//! Peers: every device accesses the memory of all, or of no other one.

use level_zero_sys as sys;

use super::list::find;
use crate::abi::arguments::{output, output_structure};
use crate::abi::result::ZeResult;

/// `zeDeviceGetP2PProperties`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn p2p(
    device: sys::ze_device_handle_t,
    peer: sys::ze_device_handle_t,
    properties: *mut sys::ze_device_p2p_properties_t,
) -> ZeResult {
    let accessible = find(device)?.can_access(find(peer)?);
    // SAFETY: the caller vouches for the pointer.
    unsafe { output_structure(properties) }?.flags = if accessible {
        sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS.0 | sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS.0
    } else {
        0
    };
    Ok(())
}

/// `zeDeviceCanAccessPeer`.
///
/// # Safety
/// As for [`p2p`].
pub unsafe fn can_access_peer(
    device: sys::ze_device_handle_t,
    peer: sys::ze_device_handle_t,
    value: *mut sys::ze_bool_t,
) -> ZeResult {
    let accessible = find(device)?.can_access(find(peer)?);
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(value) }? = accessible.into();
    Ok(())
}
