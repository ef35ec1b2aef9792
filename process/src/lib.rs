//! What belongs to one process, for every crate of zeusm. Nothing here knows of Level Zero.
//!
//! A fork's child has a copy of its parent's memory, and only the thread that forked. Locks that other threads held stay
//! locked, their work does not complete, and handles may be valid in the parent only. So state that threads share is kept in
//! one of these:
//!
//! - [`Local`]: each process makes its own value, and does not use its parent's.
//! - [`Owned`]: a value that children may read, and that only the process that made it drops.
//! - [`ForkSafe`]: the state of an object that children inherit. A child makes its own from its parent's on first use.
//! - [`Lazy`]: a value that children inherit, made on first use without a wait for another thread.
//! - [`ForkLock`]: a lock of a table that children inherit, which the forking thread holds during the fork, so that the child
//!   finds it unlocked and the table consistent.
//!
//! [`memory`] says how much memory the process may use, and messages show [`Bytes`]. On Linux there are also [`OwnDescriptor`], a descriptor that the program
//! may have closed, [`boot_id`] and [`maps`].
//!
//! Inherited values of all kinds are leaked in the child, with their locks, threads and handles.
#![deny(missing_docs, clippy::disallowed_types)]

#[macro_use]
#[doc(hidden)]
pub mod fork;

#[cfg(target_os = "linux")]
mod boot;
mod bytes;
#[cfg(target_os = "linux")]
mod descriptor;
mod fork_safe;
mod generation;
mod lazy;
mod local;
mod lock;
#[cfg(target_os = "linux")]
pub mod maps;
#[cfg(windows)]
#[path = "maps/windows.rs"]
pub mod maps;
pub mod memory;
mod registry;
#[cfg(not(loom))]
mod spin;
mod sync;
#[cfg(loom)]
#[doc(hidden)]
pub mod tests;
mod thread;

// Without a feature for it: tests and builds would have different crates, and replace each other's libraries.
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod testing;
pub mod variables;

#[cfg(target_os = "linux")]
pub use boot::boot_id;
pub use bytes::Bytes;
#[cfg(target_os = "linux")]
pub use descriptor::{FIRST_DESCRIPTOR, FileId, OwnDescriptor, OwnFile, duplicate, inode};
pub use fork::{AtFork, ForkLock, register};
pub use fork_safe::{ForkSafe, Reinit};
pub use generation::generation;
pub use lazy::Lazy;
pub use local::{Local, Owned};
pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
// Models do not depend on how a thread waits.
#[cfg(loom)]
pub use lock::{Mutex as SpinLock, MutexGuard as SpinGuard};
pub use registry::Registry;
#[cfg(not(loom))]
pub use spin::{SpinGuard, SpinLock};
pub use sync::atomic;
pub use thread::this_thread;
