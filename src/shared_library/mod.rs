//! The shared libraries of this process. Nothing here loads a library.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{find, function, is_loaded, path_of, symbol};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{containing, function, module, path_of, symbol};
