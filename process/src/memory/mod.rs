//! The memory that this process may use: that of the machine, of its control groups, and of its addresses.

use std::io;
use std::path::Path;

mod amount;
mod bound;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows.rs"]
mod platform;

pub use amount::Memory;
pub use bound::Bound;
pub use platform::group_limit;
use platform::resources;

impl Bound {
    /// The limits of this process.
    #[must_use]
    pub fn all() -> Box<[Self]> {
        let now = Memory::now();
        let is_set = group_limit(Path::new("/")).is_some();
        let memory = Self {
            what: match is_set {
                true => "control groups limit the memory of this process",
                false => "the machine limits memory and swap space",
            },
            limit: now.with_swap,
            free: now.available,
            is_set,
        };
        [memory].into_iter().chain(resources()).collect()
    }

    /// That with the least free.
    #[must_use]
    pub fn least() -> Option<Self> {
        Self::all().into_iter().min_by_key(|bound| bound.free)
    }

    /// What may be the limit behind the system's error, to follow its text; empty for an error that is not of memory or threads.
    #[must_use]
    pub fn behind(error: &io::Error) -> String {
        let what = match error.kind() {
            io::ErrorKind::OutOfMemory => "",
            // That of a thread that is not started.
            io::ErrorKind::WouldBlock => "threads are limited (ulimit -u), or memory for a stack: ",
            _ => return String::new(),
        };
        Self::least().map_or_else(String::new, |least| format!(": {what}{least}"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
