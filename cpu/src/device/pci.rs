//! `zeDevicePciGetPropertiesExt`: addresses that tell the devices apart.

use level_zero_sys as sys;

use super::list::find;
use crate::abi::arguments::output_structure;
use crate::abi::result::ZeResult;

/// The domain of all addresses, above those that a PCI bus or a volume management device has: no hardware is there.
const DOMAIN: u32 = 0x00ff_ffff;

/// `zeDevicePciGetPropertiesExt`. The devices are on no bus: they have addresses because programs tell devices apart by
/// them, and the addresses ascend in the order of the devices. A tile has its GPU's. The speed is unknown.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn pci(
    device: sys::ze_device_handle_t,
    properties: *mut sys::ze_pci_ext_properties_t,
) -> ZeResult {
    let device = find(device)?;
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { output_structure(properties) }?;
    properties.address = sys::ze_pci_address_ext_t {
        domain: DOMAIN,
        bus: device.place(),
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
