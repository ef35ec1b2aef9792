//! Which devices are presented: how many GPUs, with how many tiles each, and which of them are visible.

use std::ffi::OsString;

use zeusm_process::variables::{InvalidVariable, number, parse, switch};

use super::mask::Mask;

/// How many GPUs are presented; with `+cpu` behind the number, a device of type CPU after them. By default there is none: what
/// counts devices, as MPI does, counts the machine once, and SYCL's default context has one device.
pub const DEVICES: &str = "ZEUSM_CPU_DEVICES";
/// How many tiles each GPU has.
pub const TILES: &str = "ZEUSM_CPU_TILES";
/// With `0`, no device accesses the memory of another.
pub const PEER_ACCESS: &str = "ZEUSM_CPU_PEER_ACCESS";
/// Level Zero's own variables.
const HIERARCHY: &str = "ZE_FLAT_DEVICE_HIERARCHY";
const MASK: &str = "ZE_AFFINITY_MASK";

/// The most GPUs.
pub const MOST_DEVICES: u32 = 32;
/// The most tiles of a GPU.
pub const MOST_TILES: u32 = 16;

/// The model by which tiles are presented.
///
/// Source: Level Zero specification, "Core programming guide", Device hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hierarchy {
    /// `zeDeviceGet` returns GPUs, whose sub-devices are their tiles.
    #[default]
    Composite,
    /// `zeDeviceGet` returns tiles, and GPUs cannot be seen.
    Flat,
    /// `zeDeviceGet` returns tiles, whose root devices are the GPUs.
    Combined,
}

/// The number of GPUs, and whether there is a CPU.
fn devices(text: &str) -> Option<(u32, bool)> {
    let gpus = text.strip_suffix("+cpu");
    let number = gpus.unwrap_or(text).parse().ok();
    let number = number.filter(|number| (1..=MOST_DEVICES).contains(number))?;
    Some((number, gpus.is_some()))
}

fn hierarchy(text: &str) -> Option<Hierarchy> {
    match text {
        "COMPOSITE" => Some(Hierarchy::Composite),
        "FLAT" => Some(Hierarchy::Flat),
        "COMBINED" => Some(Hierarchy::Combined),
        _ => None,
    }
}

/// The devices to present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of GPUs.
    pub gpus: u32,
    /// Whether a CPU is presented after them.
    pub cpu: bool,
    /// The number of tiles of each GPU.
    pub tiles: u32,
    /// Whether every device accesses the memory of all.
    pub peer_access: bool,
    /// How tiles are presented.
    pub hierarchy: Hierarchy,
    mask: Mask,
}

/// Where a device is: which GPU it is or is part of, the CPU having the number after the last GPU; and its visible tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the GPU or, after the last one, the CPU.
    pub device: u32,
    /// The numbers of its visible tiles, at least one; a device without tiles has tile 0.
    pub tiles: Vec<u32>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            gpus: 1,
            cpu: false,
            tiles: 1,
            peer_access: true,
            hierarchy: Hierarchy::default(),
            mask: Mask::default(),
        }
    }
}

impl Layout {
    /// The layout that the variables describe, which `read` returns by name.
    ///
    /// # Errors
    /// For a value that cannot be used, and a mask that leaves no device.
    pub fn of_variables(
        read: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Self, InvalidVariable> {
        let hierarchies = || "COMPOSITE, FLAT or COMBINED".to_owned();
        let counts =
            || format!("a number from 1 to {MOST_DEVICES}, with or without +cpu behind it");
        let (gpus, cpu) = parse(&read, DEVICES, counts, devices)?.unwrap_or((1, false));
        let layout = Self {
            gpus,
            cpu,
            tiles: number(&read, TILES, 1..=MOST_TILES)?.unwrap_or(1),
            peer_access: switch(&read, PEER_ACCESS)?.unwrap_or(true),
            hierarchy: parse(&read, HIERARCHY, hierarchies, hierarchy)?.unwrap_or_default(),
            ..Self::default()
        };
        let expected = || layout.expected_mask();
        let mask = parse(&read, MASK, expected, |text| {
            let masked = Self {
                mask: Mask::read(text)?,
                ..layout.clone()
            };
            let has_tiles = masked.mask.has_tiles();
            let valid = layout.hierarchy == Hierarchy::Composite || !has_tiles;
            (valid && !masked.places().is_empty()).then_some(masked.mask)
        })?
        .unwrap_or_default();
        Ok(Self { mask, ..layout })
    }

    /// The visible devices. The GPUs are first, as programs take the first device by default.
    pub fn places(&self) -> Vec<Place> {
        let is_composite = self.hierarchy == Hierarchy::Composite;
        let is_visible = |device: u32, tile: u32| {
            if is_composite {
                self.mask.shows(device, tile)
            } else {
                self.mask.shows(device * self.tiles + tile, 0)
            }
        };
        let place = |device: u32| {
            let tiles = if device < self.gpus { self.tiles } else { 1 };
            let tiles = (0..tiles)
                .filter(|&tile| is_visible(device, tile))
                .collect();
            Place { device, tiles }
        };
        (0..self.gpus + u32::from(self.cpu))
            .map(place)
            .filter(|place| !place.tiles.is_empty())
            .collect()
    }

    fn expected_mask(&self) -> String {
        let gpus = match self.hierarchy {
            Hierarchy::Composite => self.gpus,
            Hierarchy::Flat | Hierarchy::Combined => self.gpus * self.tiles,
        };
        let last = gpus - u32::from(!self.cpu);
        let tiles = match (self.hierarchy, self.tiles) {
            (Hierarchy::Composite, 2..) => {
                format!(" or tiles 0.0 to {}.{}", self.gpus - 1, self.tiles - 1)
            }
            _ => String::new(),
        };
        format!("a list of devices 0 to {last}{tiles}, with commas between them")
    }
}

#[cfg(test)]
mod tests;
