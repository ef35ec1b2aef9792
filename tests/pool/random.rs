//! Pseudo-random numbers, the same in each run (splitmix64).

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// From 0 to less than 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A size with a probability that falls with its square, so that small and large sizes have as many bytes in sum.
    pub fn power_law(&mut self, smallest: usize, largest: usize) -> usize {
        let ratio = smallest as f64 / largest as f64;
        let size = smallest as f64 / (1.0 - self.fraction() * (1.0 - ratio));
        (size as usize).clamp(smallest, largest)
    }
}
