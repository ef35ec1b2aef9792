//! The live objects of one kind, found by slot number in constant time.

use std::ptr;
use std::sync::Arc;

use super::{GENERATION_BITS, SLOT_BITS};
use crate::process::sync::{Held, Lazy, Mutex, MutexGuard, RwLock};

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

/// The live objects of one kind. Segments never move, so readers take only the lock of their own slot; who changes a
/// slot has the vacancies' lock as well.
pub struct Table<T: 'static> {
    segments: [Lazy<Box<[Slot<T>]>>; SEGMENTS],
    vacancies: Mutex<Vacancies>,
    held: Held<MutexGuard<'static, Vacancies>>,
}

/// What a fork asks of a table, whatever its objects.
pub trait Shelf {
    /// Keeps every other thread from changing the table until this one calls [`release`](Self::release).
    fn hold(&'static self);
    /// Ends what [`hold`](Self::hold) began on this thread.
    fn release(&'static self);
    /// As [`release`](Self::release), on the only thread of a child: no slot stays locked by a reader that the child
    /// does not have.
    fn inherit(&'static self);
}

impl<T: Send + Sync> Shelf for Table<T> {
    fn hold(&'static self) {
        let guard = self.vacancies.lock();
        // SAFETY: `held` goes with the vacancies' lock.
        unsafe { self.held.put(guard) };
    }

    fn release(&'static self) {
        // SAFETY: this thread took the lock in `hold`, or is a copy of the one that did.
        drop(unsafe { self.held.take() });
    }

    fn inherit(&'static self) {
        for slot in self.segments.iter().filter_map(Lazy::get).flatten() {
            let place = ptr::from_ref(&slot.0).cast_mut();
            // SAFETY: the child has no other thread, and a lock is changed through shared references in all its bytes.
            // No writer was there when the process forked, so the entry is whole.
            unsafe { place.write(RwLock::new(place.read().into_inner())) };
        }
        self.release();
    }
}

impl<T: Send + Sync> Table<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            segments: [const { Lazy::new() }; SEGMENTS],
            vacancies: Mutex::new(Vacancies {
                free: Vec::new(),
                used: 0,
            }),
            held: Held::new(),
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

    /// Takes the object of that generation out of slot `number`.
    pub fn remove(&self, number: u32, generation: u32) -> Option<Arc<T>> {
        let mut vacancies = self.vacancies.lock();
        let mut entry = self.slot(number)?.0.write();
        if entry.generation != generation {
            return None;
        }
        let object = entry.object.take()?;
        entry.generation += 1;
        // A slot whose generations are used up is left alone, so that no old handle ever comes back to life.
        let reusable = entry.generation < 1 << GENERATION_BITS;
        if reusable {
            vacancies.free.push(number);
        }
        Some(object)
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
