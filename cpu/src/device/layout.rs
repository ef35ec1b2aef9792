//! Which devices are presented: how many GPUs, with how many tiles each, and which of them are visible.

use std::env;
use std::ffi::OsString;
use std::str::FromStr;

use zeusm_process::variables::{InvalidVariable, number, parse, switch};

use super::mask::Mask;

/// How many GPUs are presented.
pub const DEVICES: &str = "ZEUSM_CPU_DEVICES";
/// How many tiles each GPU has.
const TILES: &str = "ZEUSM_CPU_TILES";
/// With `0`, no device accesses the memory of another.
const PEER_ACCESS: &str = "ZEUSM_CPU_PEER_ACCESS";
/// Level Zero's own variables.
const HIERARCHY: &str = "ZE_FLAT_DEVICE_HIERARCHY";
const MASK: &str = "ZE_AFFINITY_MASK";

/// The most GPUs, and the most tiles of each.
const MOST_DEVICES: u32 = 32;
const MOST_TILES: u32 = 16;

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

impl FromStr for Hierarchy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "COMPOSITE" => Ok(Self::Composite),
            "FLAT" => Ok(Self::Flat),
            "COMBINED" => Ok(Self::Combined),
            _ => Err(()),
        }
    }
}

/// The devices to present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of GPUs.
    pub gpus: u32,
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
        let layout = Self {
            gpus: number(&read, DEVICES, 1..=MOST_DEVICES)?.unwrap_or(1),
            tiles: number(&read, TILES, 1..=MOST_TILES)?.unwrap_or(1),
            peer_access: switch(&read, PEER_ACCESS)?.unwrap_or(true),
            hierarchy: parse(&read, HIERARCHY, hierarchies, |text| text.parse().ok())?
                .unwrap_or_default(),
            ..Self::default()
        };
        let expected = || layout.expected_mask();
        let mask = parse(&read, MASK, expected, |text| {
            let masked = Self {
                mask: text.parse().ok()?,
                ..layout.clone()
            };
            let has_tiles = masked.mask.has_tiles();
            let valid = layout.hierarchy == Hierarchy::Composite || !has_tiles;
            (valid && !masked.places().is_empty()).then_some(masked.mask)
        })?
        .unwrap_or_default();
        Ok(Self { mask, ..layout })
    }

    /// The same with so many GPUs and tiles, and with or without peer access.
    ///
    /// # Errors
    /// For numbers out of range, and a mask that leaves none of the devices.
    pub fn with(&self, gpus: u32, tiles: u32, peer_access: bool) -> Result<Self, InvalidVariable> {
        for (variable, value, most) in [(DEVICES, gpus, MOST_DEVICES), (TILES, tiles, MOST_TILES)] {
            number(|_| Some(value.to_string().into()), variable, 1..=most)?;
        }
        let layout = Self {
            gpus,
            tiles,
            peer_access,
            ..self.clone()
        };
        if layout.places().is_empty() {
            return Err(InvalidVariable {
                name: MASK,
                value: env::var_os(MASK)
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                expected: layout.expected_mask(),
            });
        }
        Ok(layout)
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
        (0..=self.gpus)
            .map(place)
            .filter(|place| !place.tiles.is_empty())
            .collect()
    }

    fn expected_mask(&self) -> String {
        let last = match self.hierarchy {
            Hierarchy::Composite => self.gpus,
            Hierarchy::Flat | Hierarchy::Combined => self.gpus * self.tiles,
        };
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn layout(variables: &[(&str, &str)]) -> Result<Layout, InvalidVariable> {
        Layout::of_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    /// The visible tiles of two GPUs with four tiles each; the CPU is 2.
    fn places(hierarchy: &str, mask: &str) -> Vec<(u32, Vec<u32>)> {
        let layout = layout(&[
            (DEVICES, "2"),
            (TILES, "4"),
            (HIERARCHY, hierarchy),
            (MASK, mask),
        ]);
        let places = layout.unwrap().places();
        places
            .into_iter()
            .map(|place| (place.device, place.tiles))
            .collect()
    }

    #[test]
    fn one_gpu_without_tiles_and_the_cpu_are_the_default() {
        let default = layout(&[]).unwrap();
        assert_eq!(
            layout(&[(DEVICES, ""), (TILES, ""), (PEER_ACCESS, ""), (MASK, "")]),
            Ok(default.clone())
        );
        assert_eq!(
            (default.gpus, default.tiles, default.peer_access),
            (1, 1, true)
        );
        assert_eq!(default.places().len(), 2);
    }

    #[test]
    fn ordinals_of_the_mask_are_those_of_the_hierarchy() {
        let all: Vec<u32> = (0..4).collect();
        assert_eq!(
            places("", ""),
            [(0, all.clone()), (1, all.clone()), (2, vec![0])]
        );
        assert_eq!(places("COMPOSITE", "1"), [(1, all.clone())]);
        assert_eq!(places("COMPOSITE", "1.1, 2"), [(1, vec![1]), (2, vec![0])]);
        for flat in ["FLAT", "COMBINED"] {
            assert_eq!(
                places(flat, "0,1,2,3,4,5,6,7"),
                [(0, all.clone()), (1, all.clone())]
            );
            assert_eq!(places(flat, "1, 2, 7"), [(0, vec![1, 2]), (1, vec![3])]);
            assert_eq!(places(flat, "8"), [(2, vec![0])]);
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (variable, value, part) in [
            (DEVICES, "0", "a number from 1 to 32"),
            (DEVICES, "many", "a number from 1 to 32"),
            (DEVICES, "-1", "a number from 1 to 32"),
            (DEVICES, "99999999999", "a number from 1 to 32"),
            (TILES, "17", "a number from 1 to 16"),
            (PEER_ACCESS, "perhaps", "no or off"),
            (HIERARCHY, "flat", "COMPOSITE, FLAT or COMBINED"),
            (MASK, "first", "devices 0 to 1, with"),
            (MASK, "2", "devices 0 to 1, with"),
        ] {
            let error = layout(&[(variable, value)]).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{variable}={value:?}")) && error.contains(part),
                "{error}"
            );
        }
        let tiles = [(TILES, "2"), (MASK, "0.2")];
        assert!(
            layout(&tiles)
                .unwrap_err()
                .to_string()
                .contains("or tiles 0.0 to 0.1")
        );
        // As the programming guide says of an ordinal with a point.
        assert!(layout(&[(TILES, "2"), (HIERARCHY, "FLAT"), (MASK, "0.0")]).is_err());
    }
}
