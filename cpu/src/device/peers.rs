//! Peers: every device accesses the memory of all, or of no other one.

use level_zero_sys as sys;

use super::list::Device;
use crate::abi::entry::Out;
use crate::abi::result::ZeResult;

/// `zeDeviceGetP2PProperties`.
pub fn p2p(
    device: &'static Device,
    peer: &'static Device,
    mut properties: Out<'_, sys::ze_device_p2p_properties_t>,
) -> ZeResult {
    properties.flags = if device.can_access(peer) {
        sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS.0 | sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS.0
    } else {
        0
    };
    Ok(())
}

/// `zeDeviceCanAccessPeer`.
pub fn can_access_peer(
    device: &'static Device,
    peer: &'static Device,
    value: &mut sys::ze_bool_t,
) -> ZeResult {
    *value = device.can_access(peer).into();
    Ok(())
}
