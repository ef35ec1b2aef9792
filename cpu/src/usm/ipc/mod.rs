//! Memory between processes: a handle names a file with an allocation in it, and another process maps that file.
//!
//! As in Intel's driver, a handle begins with a file descriptor of the process that made it, and a program may move the
//! descriptor itself and write the new number there. If it does not, opening fetches the descriptor where the system
//! lets it (`pidfd_getfd`).
//!
//! Small allocations share a file of 2 MiB with their neighbours: a process that opens one maps only its pages, but has
//! a descriptor of the whole file. So no further allocation is placed in a file once a handle to it was created.

mod export;
mod handle;
mod import;

pub use export::{get, get_with_properties, put, to_descriptor};
pub use handle::{Handle, Subject};
pub use import::{close, find_file, from_descriptor, open};
