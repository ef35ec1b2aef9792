//! Loading of a Level Zero library and lookup of its functions.

use std::error::Error as _;
use std::ffi::{CStr, OsString};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::functions::{Functions, symbol};
use crate::platform::{self, LOADER_NAMES};

/// A Level Zero library cannot be opened, or lacks a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// None of the candidates could be opened.
    #[error("no Level Zero library could be opened; tried {}", describe(.0))]
    Library(Vec<(OsString, libloading::Error)>),
    /// The library lacks the function.
    #[error("{} has no function {name}: the library is too old", .library.display())]
    Symbol {
        /// The function's name.
        name: String,
        /// The library.
        library: PathBuf,
    },
}

fn describe(tried: &[(OsString, libloading::Error)]) -> String {
    let each: Vec<String> = tried
        .iter()
        .map(|(name, error)| format!("{} ({})", name.display(), reason(error)))
        .collect();
    each.join(", ")
}

/// The dynamic linker's message, which names a missing dependency.
fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

impl LoadError {
    /// The dynamic linker's message for each candidate; none when a function is missing.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        match self {
            Self::Library(tried) => tried.iter().map(|(_, error)| reason(error)).collect(),
            Self::Symbol { .. } => Vec::new(),
        }
    }
}

/// An open Level Zero library; dereferences to its [`Functions`].
///
/// The library stays open for the rest of the process: drivers start threads and register exit handlers, so
/// unloading one is never safe.
#[derive(Debug)]
pub struct Library {
    functions: Functions,
    handle: libloading::Library,
    path: PathBuf,
}

impl Library {
    /// The name or path that opened the library.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error for a library that lacks `name`.
    #[must_use]
    pub fn missing(&self, name: &str) -> LoadError {
        LoadError::Symbol {
            name: name.to_owned(),
            library: self.path.clone(),
        }
    }

    /// A function that the headers do not declare, for example one of a newer specification.
    ///
    /// # Errors
    /// [`LoadError::Symbol`] when the library does not export `name`.
    ///
    /// # Safety
    /// `F` must be the function pointer type (`unsafe extern "C" fn ...`) of `name` in the library.
    pub unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Result<F, LoadError> {
        // SAFETY: the caller guarantees the type.
        unsafe { symbol(&self.handle, name) }.ok_or_else(|| self.missing(&name.to_string_lossy()))
    }
}

impl Deref for Library {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

/// Opens the system's Level Zero loader.
///
/// # Errors
/// [`LoadError::Library`] with every name that was tried.
pub fn load() -> Result<&'static Library, LoadError> {
    let mut tried = Vec::new();
    for name in LOADER_NAMES {
        // SAFETY: the system has Level Zero's loader by this name, whose specification allows to open it at any time.
        match unsafe { platform::open_loader(name) } {
            Ok(handle) => return Ok(kept(handle, Path::new(name))),
            Err(error) => tried.push((OsString::from(name), error)),
        }
    }
    Err(LoadError::Library(tried))
}

/// Opens the Level Zero library at `path`: a loader, or a driver that exports the API by name.
///
/// # Errors
/// [`LoadError::Library`] with the path and the dynamic linker's message.
///
/// # Safety
/// The library's initialisers must permit to be run at this time, and what it exports under the names of Level Zero's functions
/// must be these functions.
pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<&'static Library, LoadError> {
    let path = path.as_ref();
    // SAFETY: the caller guarantees that it is a Level Zero library.
    unsafe { platform::open(path) }
        .map(|handle| kept(handle, path))
        .map_err(|error| LoadError::Library(vec![(path.as_os_str().to_owned(), error)]))
}

/// The functions of an open library, which stays open.
fn kept(handle: libloading::Library, path: &Path) -> &'static Library {
    Box::leak(Box::new(Library {
        functions: Functions::of(&handle),
        handle,
        path: path.to_owned(),
    }))
}
