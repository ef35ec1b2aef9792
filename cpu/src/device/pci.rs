//! `zeDevicePciGetPropertiesExt`: addresses that tell the devices apart.

use level_zero_sys as sys;

use super::list::Device;
use crate::abi::entry::Out;
use crate::abi::result::ZeResult;

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
