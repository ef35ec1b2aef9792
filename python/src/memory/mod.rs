//! Memory objects: `_Memory`, the common base class, and the class of each kind.

mod access;
mod base;
mod buffer;
#[cfg(not(Py_LIMITED_API))]
mod buffer_slot;
mod classes;
mod fields;
mod lifetime;
mod owner;
mod pickling;
mod pinned;
mod properties;

pub(crate) use base::PyMemory;
#[cfg(not(Py_LIMITED_API))]
pub(crate) use buffer_slot::shorten as shorten_views;
#[cfg(not(Py_LIMITED_API))]
pub(crate) use classes::kind_of;
pub(crate) use classes::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, as_memory, object};
pub(crate) use fields::{Terms, note_import_by_address};
pub(crate) use owner::Owner;
pub(crate) use pickling::PLAIN_PROTOCOL;
pub(crate) use pinned::Pinned;
