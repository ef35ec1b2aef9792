//! `ZE_AFFINITY_MASK`: which devices and tiles are visible.

/// The devices and tiles that the mask names, in its order; every one if it names none.
///
/// Source: Level Zero specification, "Core programming guide", Affinity mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask(Vec<Ordinal>);

/// A device and, behind a point, one of its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ordinal {
    device: u32,
    tile: Option<u32>,
}

impl Mask {
    /// Whether tile `tile` of device `device` is visible.
    pub fn shows(&self, device: u32, tile: u32) -> bool {
        let shows = |ordinal: &Ordinal| {
            ordinal.device == device && ordinal.tile.is_none_or(|named| named == tile)
        };
        self.0.is_empty() || self.0.iter().any(shows)
    }

    /// Whether it names a tile.
    pub fn has_tiles(&self) -> bool {
        self.0.iter().any(|ordinal| ordinal.tile.is_some())
    }

    /// Reads numbers with commas between them, each alone or with a second one behind a point.
    pub fn read(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self::default());
        }
        text.split(',')
            .map(Ordinal::read)
            .collect::<Option<_>>()
            .map(Self)
    }
}

impl Ordinal {
    fn read(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        let (device, tile) = match text.trim().split_once('.') {
            None => (text.trim(), None),
            Some((device, tile)) => (device, Some(tile)),
        };
        Some(Self {
            device: number(device)?,
            tile: match tile {
                Some(tile) => Some(number(tile)?),
                None => None,
            },
        })
    }
}

#[cfg(test)]
mod tests;
