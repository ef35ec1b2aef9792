//! Memory between processes: a handle names a file with an allocation in it, and another process maps that file.
//!
//! As in Intel's driver, a handle begins with a file descriptor of the process that made it, and a program may move the
//! descriptor itself and write the new number there. If it does not, opening fetches the descriptor where the system
//! lets it (`pidfd_getfd`). The descriptor alone is enough, with zeros in place of all other bytes: its file describes the memory,
//! which begins where the file does, and its position tells a part of physical memory.

mod export;
mod handle;
mod import;

pub use export::{get, get_with_properties, put, to_descriptor};
pub use handle::{Handle, Subject};
pub use import::{close, find_file, from_descriptor, open};
