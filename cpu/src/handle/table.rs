//! The live objects of one kind, found by slot number in constant time.

use std::ptr;
use std::sync::Arc;

use zeusm_process::{AtFork, ForkLock, Lazy, RwLock};

/// How many generations a slot has, and how many slots there are, as powers of two.
pub(super) const GENERATION_BITS: u32 = 24;
pub(super) const SLOT_BITS: u32 = 24;

/// Slots in the first segment; each further one is twice as large as the one before.
const FIRST: u32 = 64;
const SEGMENTS: usize = (SLOT_BITS - FIRST.trailing_zeros()) as usize;

/// A slot for one object, reused under a new generation.
struct Slot<T>(RwLock<Entry<T>>);

struct Entry<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

struct Vacancies {
    free: Vec<u32>,
    /// How many slots have ever been used.
    used: u32,
}

/// The live objects of one kind. Segments never move, so readers take only the lock of their slot; a thread that
/// changes a slot holds the vacancies' lock as well.
pub struct Table<T: 'static> {
    segments: [Lazy<Box<[Slot<T>]>>; SEGMENTS],
    vacancies: ForkLock<Vacancies>,
}

impl<T: Send + Sync> AtFork for Table<T> {
    fn prepare(&'static self) {
        self.vacancies.prepare();
    }

    fn parent(&'static self) {
        self.vacancies.parent();
    }

    /// Also unlocks slots of readers that the child does not have.
    fn child(&'static self) {
        for slot in self.segments.iter().filter_map(Lazy::get).flatten() {
            let place = ptr::from_ref(&slot.0).cast_mut();
            // SAFETY: the child has no other thread, and a lock may be written through a shared reference. No thread
            // was writing at the fork, so the entry is consistent.
            unsafe { place.write(RwLock::new(place.read().into_inner())) };
        }
        self.parent();
    }
}

impl<T: Send + Sync> Table<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            segments: [const { Lazy::new() }; SEGMENTS],
            vacancies: ForkLock::new(Vacancies {
                free: Vec::new(),
                used: 0,
            }),
        }
    }

    /// Puts `object` in a free slot: its number and generation, or `None` when every slot is in use.
    pub fn insert(&self, object: Arc<T>) -> Option<(u32, u32)> {
        let mut vacancies = self.vacancies.lock();
        let number = vacancies.free.last().copied().unwrap_or(vacancies.used);
        let (segment, _) = locate(number);
        self.segments.get(segment)?.get_or_make(|| {
            (0..FIRST << segment)
                .map(|_| {
                    Slot(RwLock::new(Entry {
                        generation: 0,
                        object: None,
                    }))
                })
                .collect()
        });
        if vacancies.free.pop().is_none() {
            vacancies.used += 1;
        }
        let mut entry = self.slot(number)?.0.write();
        entry.object = Some(object);
        Some((number, entry.generation))
    }

    /// The object in slot `number`, if it is still the one of that generation.
    pub fn get(&self, number: u32, generation: u32) -> Option<Arc<T>> {
        let entry = self.slot(number)?.0.read();
        if entry.generation != generation {
            return None;
        }
        entry.object.clone()
    }

    /// Removes the object of that generation from slot `number`.
    pub fn remove(&self, number: u32, generation: u32) -> Option<Arc<T>> {
        let mut vacancies = self.vacancies.lock();
        let mut entry = self.slot(number)?.0.write();
        if entry.generation != generation {
            return None;
        }
        let object = entry.object.take()?;
        entry.generation += 1;
        // A slot whose generations are used up is not reused, so that no old handle becomes valid again.
        let reusable = entry.generation < 1 << GENERATION_BITS;
        if reusable {
            vacancies.free.push(number);
        }
        Some(object)
    }

    /// The live objects.
    pub fn all(&self) -> Vec<Arc<T>> {
        let vacancies = self.vacancies.lock();
        let slots = (0..vacancies.used).filter_map(|number| self.slot(number));
        slots
            .filter_map(|slot| slot.0.read().object.clone())
            .collect()
    }

    fn slot(&self, number: u32) -> Option<&Slot<T>> {
        let (segment, offset) = locate(number);
        self.segments.get(segment)?.get()?.get(offset)
    }
}

impl<T: Send + Sync> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The segment of a slot and its place in there.
fn locate(number: u32) -> (usize, usize) {
    let position = number + FIRST;
    let segment = position.ilog2() - FIRST.ilog2();
    (segment as usize, (position - (FIRST << segment)) as usize)
}
