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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The visible ones of two devices with four tiles each.
    fn visible(text: &str) -> Vec<(u32, u32)> {
        let mask = Mask::read(text).unwrap();
        let all = (0..2).flat_map(|device| (0..4).map(move |tile| (device, tile)));
        all.filter(|(device, tile)| mask.shows(*device, *tile))
            .collect()
    }

    #[test]
    fn the_examples_of_the_programming_guide_are_read() {
        let first = [(0, 0), (0, 1), (0, 2), (0, 3)];
        let second = [(1, 0), (1, 1), (1, 2), (1, 3)];
        for everything in ["", " ", "0, 1", "1,0"] {
            assert_eq!(visible(everything), [first, second].concat());
        }
        assert_eq!(visible("0"), first);
        assert_eq!(visible("1"), second);
        assert_eq!(visible("0.0"), [(0, 0)]);
        assert_eq!(visible("1.1, 1.2"), [(1, 1), (1, 2)]);
        assert_eq!(
            visible("0.2, 1.3, 1.0, 0.3"),
            [(0, 2), (0, 3), (1, 0), (1, 3)]
        );
        assert_eq!(visible("0.1,0"), first);
        assert_eq!(visible("2,0.9"), []);
    }

    #[test]
    fn anything_else_is_an_error() {
        for text in [
            "gpu",
            ",",
            "0,",
            "0.",
            ".1",
            "0.1.2",
            "-1",
            "+1",
            "1;2",
            "4294967296",
        ] {
            assert_eq!(Mask::read(text), None, "{text}");
        }
    }
}
