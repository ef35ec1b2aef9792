//! In the place of the CPU runtime's `renew`: forks are not modelled, so a value stays as it is.

pub trait Renew {
    fn renew(&self) -> Self;
}

pub struct Renewed<T>(T);

impl<T> Renewed<T> {
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

impl<T: Default> Default for Renewed<T> {
    fn default() -> Self {
        Self(T::default())
    }
}
