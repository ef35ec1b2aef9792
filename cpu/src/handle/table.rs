//! The live objects of one kind, found by slot number in constant time.

use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::{GENERATION_BITS, SLOT_BITS};

/// Slots in the first segment; each further one is twice as large as the one before.
const FIRST: u32 = 64;
const SEGMENTS: usize = (SLOT_BITS - FIRST.trailing_zeros()) as usize;

/// A place for one object, used again under a new generation after its object is gone.
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

/// The live objects of one kind. Segments never move, so readers take only the lock of their own slot.
pub struct Table<T> {
    segments: [OnceLock<Box<[Slot<T>]>>; SEGMENTS],
    vacancies: Mutex<Vacancies>,
}

impl<T> Table<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            vacancies: Mutex::new(Vacancies {
                free: Vec::new(),
                used: 0,
            }),
        }
    }

    /// Puts `object` in a free slot: its number and generation, or `None` when every slot is in use.
    pub fn insert(&self, object: Arc<T>) -> Option<(u32, u32)> {
        let number = {
            let mut vacancies = self.vacancies.lock();
            match vacancies.free.pop() {
                Some(number) => number,
                None => {
                    let number = vacancies.used;
                    if locate(number).0 >= SEGMENTS {
                        return None;
                    }
                    vacancies.used += 1;
                    number
                }
            }
        };
        let (segment, _) = locate(number);
        self.segments.get(segment)?.get_or_init(|| {
            (0..FIRST << segment)
                .map(|_| {
                    Slot(RwLock::new(Entry {
                        generation: 0,
                        object: None,
                    }))
                })
                .collect()
        });
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

    /// Takes the object of that generation out of slot `number`.
    pub fn remove(&self, number: u32, generation: u32) -> Option<Arc<T>> {
        let mut entry = self.slot(number)?.0.write();
        if entry.generation != generation {
            return None;
        }
        let object = entry.object.take()?;
        entry.generation += 1;
        // A slot whose generations are used up is left alone, so that no old handle ever comes back to life.
        let reusable = entry.generation < 1 << GENERATION_BITS;
        drop(entry);
        if reusable {
            self.vacancies.lock().free.push(number);
        }
        Some(object)
    }

    fn slot(&self, number: u32) -> Option<&Slot<T>> {
        let (segment, offset) = locate(number);
        self.segments.get(segment)?.get()?.get(offset)
    }
}

impl<T> Default for Table<T> {
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
