//! The opening of a library by a dynamic linker.

use std::path::Path;

/// The names under which systems install the loader.
pub(crate) const LOADER_NAMES: &[&str] = &["libze_loader.so.1", "libze_loader.so"];

/// Opens the loader, which the dynamic linker finds.
///
/// # Safety
/// The library's initialisers must permit to be run at this time.
pub(crate) unsafe fn open_loader(name: &str) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller guarantees that the initialisers may run.
    unsafe { libloading::Library::new(name) }
}

/// Opens a library with those that it needs.
///
/// # Safety
/// As for [`open_loader`].
pub(crate) unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller guarantees that the initialisers may run.
    unsafe { libloading::Library::new(path) }
}
