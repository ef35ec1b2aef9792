//! Lists of objects that are alive in this process.

use std::sync::{Arc, Weak};

use crate::local::Local;
use crate::lock::Mutex;

/// The objects of one kind that are alive. A fork's child has none of its parent's.
pub struct Registry<T: ?Sized>(Local<Mutex<Vec<Weak<T>>>>);

impl<T: ?Sized> Registry<T> {
    /// No objects.
    #[must_use]
    pub const fn new() -> Self {
        Self(Local::new())
    }

    /// Adds an object, which is removed some time after its drop.
    pub fn register(&self, object: Weak<T>) {
        let mut objects = self.0.get_or_default().lock();
        objects.retain(|object| object.strong_count() > 0);
        objects.push(object);
    }

    /// The objects that are alive. The caller may drop the last reference to one.
    pub fn objects(&self) -> Vec<Arc<T>> {
        let objects = self.0.get().map(|objects| objects.lock());
        let objects = objects.iter().flat_map(|objects| objects.iter());
        objects.filter_map(Weak::upgrade).collect()
    }
}

impl<T: ?Sized> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}
