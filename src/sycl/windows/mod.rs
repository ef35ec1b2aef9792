//! dpctl's library and the SYCL runtime in this process, as Windows has loaded them.

mod exception;
mod imports;
pub(super) mod names;

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::HMODULE;

pub(super) use exception::Handler;

use crate::shared_library;

/// The SYCL runtimes of 2026, 2025 and 2024.
const SYCL: [&CStr; 3] = [c"sycl9.dll", c"sycl8.dll", c"sycl7.dll"];
/// The C runtime of all of them.
const C_RUNTIME: &CStr = c"ucrtbase.dll";

/// dpctl's library and those whose functions it uses. They are never unloaded.
pub(super) struct Loaded {
    path: PathBuf,
    modules: Vec<HMODULE>,
}

impl Loaded {
    /// The libraries that are loaded already.
    pub(super) fn find() -> Option<Self> {
        let interface = shared_library::module(c"DPCTLSyclInterface.dll")?;
        // Two versions of SYCL may be loaded.
        let sycl = imports::from(interface, |file| version(file).is_some());
        let modules = [sycl, shared_library::module(C_RUNTIME)];
        Some(Self {
            path: shared_library::path_of(interface)?,
            modules: [interface]
                .into_iter()
                .chain(modules.into_iter().flatten())
                .collect(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A function of these libraries.
    ///
    /// # Safety
    /// `F` must be the type of the function.
    pub(super) unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the caller guarantees the type.
        let symbol = |module: &HMODULE| unsafe { shared_library::symbol(*module, name) };
        self.modules.iter().find_map(symbol)
    }

    /// What catches exceptions of the libraries' functions.
    pub(super) fn handler(&self) -> Option<Handler> {
        Some(Handler)
    }

    /// No library.
    #[cfg(test)]
    pub(super) fn this() -> Self {
        Self {
            path: PathBuf::from(r"C:\somewhere\DPCTLSyclInterface.dll"),
            modules: Vec::new(),
        }
    }
}

/// The path of a SYCL runtime in this process.
pub(super) fn sycl() -> Option<PathBuf> {
    let module = SYCL.into_iter().find_map(shared_library::module)?;
    shared_library::path_of(module)
}

/// The major version in the file name of a SYCL runtime.
pub(super) fn version(file: &str) -> Option<u32> {
    let file = file.to_ascii_lowercase();
    file.strip_prefix("sycl")?
        .strip_suffix(".dll")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_version_is_in_the_name() {
        assert_eq!(version("sycl9.dll"), Some(9));
        assert_eq!(version("SYCL8.DLL"), Some(8));
        assert_eq!(version("sycl9d.dll"), None);
        assert_eq!(version("sycl.dll"), None);
    }
}
