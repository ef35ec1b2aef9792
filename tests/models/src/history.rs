//! Replaces the crate's history by one that never records.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub pool: u32,
    pub context: usize,
}

pub fn allocated(_: impl FnOnce() -> (usize, usize), _: &Place, _: Option<bool>) {}
pub fn freed(_: impl FnOnce() -> (usize, usize), _: &Place) {}
pub fn reserved(_: usize, _: usize, _: &Place) {}
pub fn released(_: usize, _: usize, _: &Place) {}
pub fn trimmed(_: usize, _: &Place) {}
