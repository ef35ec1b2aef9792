//! State of objects that a fork's child inherits.
//!
//! A child has the handles of its parent's objects. At the fork, threads of the parent may hold their locks, and their work may
//! be in flight where the child has nothing. So a child makes the state of such an object anew, from its parent's.

use crate::local::{Local, Owned};
use crate::lock::Mutex;

/// State that a fork's child can make from its parent's.
pub trait Reinit {
    /// The state for the child. Of `self`, it may read atomics and what it can lock without waiting; it uses no other
    /// [`ForkSafe`].
    fn reinit(&self) -> Self;
}

/// A copy of the guarded value, or the default if a thread of the parent held the lock.
impl<T: Clone + Default> Reinit for Mutex<T> {
    fn reinit(&self) -> Self {
        Self::new(self.try_lock().map_or_else(T::default, |held| held.clone()))
    }
}

/// A value of which a fork's child makes its own on first use, leaking its copy of the parent's.
#[derive(Debug)]
pub struct ForkSafe<T> {
    first: Owned<T>,
    /// That of a child of the process that made the first.
    own: Local<T>,
}

impl<T> ForkSafe<T> {
    /// Wraps a value of this process.
    pub fn new(value: T) -> Self {
        Self {
            first: Owned::new(value),
            own: Local::new(),
        }
    }

    /// Whether the value is from before a fork, and will be replaced.
    pub fn is_inherited(&self) -> bool {
        self.first.is_inherited() && self.own.get().is_none()
    }

    /// The value, if this process made it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.first.is_inherited() {
            self.own.get_mut()
        } else {
            Some(&mut self.first)
        }
    }
}

impl<T: Reinit> ForkSafe<T> {
    /// This process's value.
    pub fn get(&self) -> &T {
        if !self.first.is_inherited() {
            return &self.first;
        }
        self.own.get().unwrap_or_else(|| self.replace())
    }

    #[cold]
    fn replace(&self) -> &T {
        // One thread at a time, so that no other has a lock that `reinit` tries.
        static REPLACING: Local<Mutex<()>> = Local::new();
        let _replacing = REPLACING.get_or_default().lock();
        self.own
            .get_or_init_from(|parents| parents.unwrap_or(&self.first).reinit())
    }
}

impl<T: Default> Default for ForkSafe<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(all(test, target_os = "linux"))]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use crate::testing::in_child;

    #[test]
    fn each_generation_goes_on_from_its_parents_value() {
        let mut shared = ForkSafe::new(Mutex::new(1));
        *shared.get().lock() += 1;
        in_child(|| {
            assert!(shared.is_inherited());
            assert!(shared.get_mut().is_none());
            assert_eq!(*shared.get().lock(), 2);
            *shared.get().lock() += 1;
            assert!(!shared.is_inherited());
            in_child(|| assert_eq!(*shared.get().lock(), 3));
            assert_eq!(shared.get_mut().map(|value| *value.get_mut()), Some(3));
        });
        assert_eq!(*shared.get().lock(), 2);
    }

    #[test]
    fn a_value_that_the_parent_was_changing_is_the_default() {
        let shared = ForkSafe::new(Mutex::new(7));
        let held = shared.get().lock();
        in_child(|| assert_eq!(*shared.get().lock(), 0));
        assert_eq!(*held, 7);
    }

    #[test]
    fn threads_of_a_child_share_one_copy() {
        let shared = ForkSafe::new(Mutex::new(5));
        in_child(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| *shared.get().lock() += 1);
                }
            });
            assert_eq!(*shared.get().lock(), 9);
        });
    }
}
