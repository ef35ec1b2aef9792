//! Replaces the CPU runtime's `fork_safe`: forks are not modelled, so a value is never reinitialised.

pub trait Reinit {
    fn reinit(&self) -> Self;
}

pub struct ForkSafe<T>(T);

impl<T> ForkSafe<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    pub fn is_inherited(&self) -> bool {
        false
    }

    pub fn get(&self) -> &T {
        &self.0
    }

    pub fn get_mut(&mut self) -> Option<&mut T> {
        Some(&mut self.0)
    }
}

impl<T: Default> Default for ForkSafe<T> {
    fn default() -> Self {
        Self(T::default())
    }
}
