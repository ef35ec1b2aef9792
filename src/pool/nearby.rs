//! The large piece that was freed last in each shard, for the shard's next allocation: threads that take and free large
//! blocks by turns then meet at no lock.
//!
//! It counts as in service. Whoever is about to ask the provider for more looks here first.

use super::coarse::Unused;
use crate::process::Mutex;

#[derive(Debug)]
pub(super) struct Nearby {
    places: Box<[Place]>,
    largest: usize,
}

/// A shard's, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place(Mutex<Option<Unused>>);

impl Nearby {
    /// A place for each shard, all together for a quarter of `most` bytes.
    pub(super) fn new(shards: usize, most: usize) -> Self {
        Self {
            places: (0..shards).map(|_| Place::default()).collect(),
            largest: most / 4 / shards,
        }
    }

    /// The most bytes that can be here.
    pub(super) fn capacity(&self) -> usize {
        self.largest * self.places.len()
    }

    pub(super) fn take(&self, shard: usize) -> Option<Unused> {
        self.places[shard].0.lock().take()
    }

    /// Puts a piece in its place; returns what has none: the one before it, or itself if it is too large.
    pub(super) fn put(&self, shard: usize, unused: Unused) -> Option<Unused> {
        if unused.chunk.size > self.largest {
            return Some(unused);
        }
        self.places[shard].0.lock().replace(unused)
    }

    /// Takes all there is.
    pub(super) fn drain(&self) -> impl Iterator<Item = Unused> {
        self.places.iter().filter_map(|place| place.0.lock().take())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ptr::NonNull;

    use super::*;
    use crate::pool::provider::Chunk;

    fn unused(size: usize) -> Unused {
        let base = NonNull::without_provenance(NonZeroUsize::MIN);
        let chunk = Chunk { base, size };
        Unused { chunk, slab: None }
    }

    #[test]
    fn a_place_holds_one_piece_up_to_its_share() {
        let nearby = Nearby::new(4, 1600);
        assert_eq!(nearby.capacity(), 400);
        let size = |unused: Option<Unused>| unused.map(|unused| unused.chunk.size);
        assert_eq!(size(nearby.put(1, unused(101))), Some(101));
        assert_eq!(size(nearby.put(1, unused(100))), None);
        assert_eq!(size(nearby.put(1, unused(99))), Some(100));
        assert_eq!(size(nearby.take(0)), None);
        assert_eq!(size(nearby.take(1)), Some(99));
        assert_eq!(size(nearby.take(1)), None);
    }
}
