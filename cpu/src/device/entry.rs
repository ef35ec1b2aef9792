//! The entry points that list devices, tell which are peers, and those of few properties.

use level_zero_sys as sys;
use level_zero_sys::ze_device_p2p_bandwidth_exp_properties_t as Bandwidth;

use super::list::{self, Device};
use crate::abi::entry::{Out, Room};
use crate::abi::result::ZeResult;
use crate::driver::Driver;
use crate::system::clock;

/// `zeDeviceGet`.
pub fn get(_: Driver, devices: Room<'_, sys::ze_device_handle_t>) -> ZeResult {
    devices.fill(&list::listed())
}

/// `zeFabricVertexGetExp`: no fabric connects devices. Intel's driver answers with a vertex for each, by which oneCCL chooses
/// kernels of GPUs for its exchanges, whose sums are wrong on the CPU.
pub fn fabric_vertices(_: Driver, all: Room<'_, sys::ze_fabric_vertex_handle_t>) -> ZeResult {
    all.fill(&[])
}

/// `zeDeviceGetFabricVertexExp`: nor is a device a vertex of one.
pub fn fabric_vertex(_: &'static Device, _: &mut sys::ze_fabric_vertex_handle_t) -> ZeResult {
    Err(sys::ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX)
}

/// `zeDeviceGetSubDevices`: the visible tiles of a GPU.
pub fn sub_devices(
    device: &'static Device,
    devices: Room<'_, sys::ze_device_handle_t>,
) -> ZeResult {
    devices.fill(&device.sub_devices())
}

/// `zeDeviceGetRootDevice`: null for a device that is no sub-device.
pub fn root_device(device: &'static Device, root: &mut sys::ze_device_handle_t) -> ZeResult {
    *root = device.root().map_or(std::ptr::null_mut(), Device::handle);
    Ok(())
}

/// `zeDeviceGetStatus`.
pub fn status(_: &'static Device) -> ZeResult {
    Ok(())
}

/// `zeDeviceGetGlobalTimestamps`: one reading for both, as host and device share the clock.
pub fn global_timestamps(_: &'static Device, host: &mut u64, on_device: &mut u64) -> ZeResult {
    let now = clock::now();
    *host = now;
    *on_device = now;
    Ok(())
}

/// `zeDeviceGetP2PProperties`: devices are connected by the machine's memory, whose bandwidth and latency are unknown.
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
    if let Some(bandwidth) = properties.extension::<Bandwidth>() {
        bandwidth.logicalBandwidth = 0;
        bandwidth.physicalBandwidth = 0;
        bandwidth.bandwidthUnit = sys::ZE_BANDWIDTH_UNIT_UNKNOWN;
        bandwidth.logicalLatency = 0;
        bandwidth.physicalLatency = 0;
        bandwidth.latencyUnit = sys::ZE_LATENCY_UNIT_UNKNOWN;
    }
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

/// The domain of all addresses, above those that a PCI bus or a volume management device has: no hardware is there.
const DOMAIN: u32 = 0x00ff_ffff;

/// `zeDevicePciGetPropertiesExt`. The devices are on no bus: they have addresses because programs tell devices apart by
/// them, and the addresses ascend in the order of the devices. A tile has its GPU's. The speed is unknown.
pub fn pci(
    device: &'static Device,
    mut properties: Out<'_, sys::ze_pci_ext_properties_t>,
) -> ZeResult {
    properties.address = sys::ze_pci_address_ext_t {
        domain: DOMAIN,
        bus: device.place,
        device: 0,
        function: 0,
    };
    properties.maxSpeed = sys::ze_pci_speed_ext_t {
        genVersion: -1,
        width: -1,
        maxBandwidth: -1,
    };
    Ok(())
}
