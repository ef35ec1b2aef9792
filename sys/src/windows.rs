//! The opening of a library on Windows, whose search leaves out the current folder and `PATH`.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf, Prefix};

use libloading::os::windows::{
    LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
    LOAD_LIBRARY_SEARCH_SYSTEM32, Library,
};

/// The names under which systems install the loader.
pub(crate) const LOADER_NAMES: &[&str] = &["ze_loader.dll"];

/// Opens the loader, which is in the system's folder.
///
/// # Safety
/// The library's initialisers must permit to be run at this time.
pub(crate) unsafe fn open_loader(name: &str) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller guarantees that the initialisers may run.
    unsafe { Library::load_with_flags(name, LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Into::into)
}

/// Opens a library with those that it needs, which may be beside it.
///
/// # Safety
/// As for [`open_loader`].
pub(crate) unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    let beside = match path.is_absolute() {
        true => LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
        false => 0, // A file name, which has no folder.
    };
    // SAFETY: the caller guarantees that the initialisers may run.
    unsafe { Library::load_with_flags(long(path), LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | beside) }
        .map(Into::into)
}

/// The path in the form that may be longer than 260 characters, if it is.
fn long(path: &Path) -> OsString {
    const SHORT: usize = 260;
    let is_of_drive = matches!(
        path.components().next(),
        Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::Disk(_))
    );
    if path.as_os_str().len() < SHORT || !path.is_absolute() || !is_of_drive {
        return path.into();
    }
    // The components have backslashes between them.
    let mut long = OsString::from(r"\\?\");
    long.push(path.components().collect::<PathBuf>());
    long
}
