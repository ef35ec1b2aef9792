//! A device in messages: its name, and its PCI address where several devices have that name.

use std::fmt;

use level_zero_sys as sys;

use super::properties::Device;
use crate::error::Result;

/// The name; where another device has the same name, also the PCI address that `lspci` and `xpu-smi` show, and the number of a
/// tile: `Intel(R) Arc(TM) B580 Graphics (0000:03:00.0)`.
impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let description = self.0.description.get_or_init(|| Box::new(self.describe()));
        formatter.write_str(description)
    }
}

impl Device {
    fn describe(&self) -> String {
        let name = self.name();
        let is_namesake = |other: &Device| other != self && other.name() == name;
        let devices = self.driver().devices().unwrap_or_default();
        if !devices.iter().any(is_namesake) {
            return name.to_owned();
        }
        match (self.pci_address(), self.0.tile) {
            (Ok(address), Some(tile)) => format!("{name} ({address}, tile {tile})"),
            (Ok(address), None) => format!("{name} ({address})"),
            (Err(_), _) => name.to_owned(),
        }
    }

    /// As the system writes it: domain, bus, device and function.
    ///
    /// Source: Level Zero specification, `zeDevicePciGetPropertiesExt`.
    fn pci_address(&self) -> Result<String> {
        let mut properties = sys::structure::<sys::ze_pci_ext_properties_t>();
        // SAFETY: the device is alive, and `properties` names its type.
        unsafe {
            call!(
                self.driver().library(),
                zeDevicePciGetPropertiesExt(self.handle(), &mut properties)
            )
        }?;
        let sys::ze_pci_address_ext_t {
            domain,
            bus,
            device,
            function,
        } = properties.address;
        Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
    }
}
