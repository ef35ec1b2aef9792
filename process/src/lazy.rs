//! Values that are made on first use and that a fork's child inherits.

use once_cell::race::OnceBox;

/// A value that is made on first use. Concurrent threads each make one and the first is kept, so no thread waits for another
/// that a fork's child might not have.
///
/// ```
/// use zeusm_process::Lazy;
///
/// static NAME: Lazy<String> = Lazy::new();
///
/// assert!(NAME.get().is_none());
/// assert_eq!(NAME.get_or_make(|| "made".to_owned()), "made");
/// ```
#[derive(Debug)]
pub struct Lazy<T>(OnceBox<T>);

impl<T: Send + Sync> Lazy<T> {
    /// A value that is not made yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceBox::new())
    }

    /// The value, if it was made.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}

impl<T: Send + Sync> Default for Lazy<T> {
    fn default() -> Self {
        Self::new()
    }
}
