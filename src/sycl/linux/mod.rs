//! dpctl's library and the SYCL runtime in this process, as Linux's dynamic linker has loaded them.

mod exception;
pub(super) mod names;

use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix;

pub(super) use exception::Handler;

use crate::shared_library;

/// The file name of the SYCL runtime, without a version.
const SYCL: &str = "libsycl.so";

/// dpctl's library, which is never closed: its functions have to stay valid, and SYCL's threads run its code.
pub(super) struct Loaded {
    library: ManuallyDrop<unix::Library>,
    path: PathBuf,
}

impl Loaded {
    /// The library that is loaded already.
    pub(super) fn find() -> Option<Self> {
        let path = shared_library::find(names::INTERFACE)?;
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: the library is loaded already, so no initialiser runs.
        let library = unsafe { unix::Library::open(Some(&path), flags) }.ok()?;
        let library = ManuallyDrop::new(library);
        Some(Self { library, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A function of the library, or of the libsycl that it uses, if there are two.
    ///
    /// # Safety
    /// `F` must be the type of the function.
    pub(super) unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: the caller guarantees the type.
        unsafe { shared_library::symbol(&self.library, name) }
    }

    /// What catches exceptions of the library's functions.
    pub(super) fn handler(&self) -> Option<Handler> {
        Handler::find(&self.library)
    }

    /// This program, which has no function of dpctl.
    #[cfg(test)]
    pub(super) fn this() -> Self {
        Self {
            library: ManuallyDrop::new(unix::Library::this()),
            path: PathBuf::from("/somewhere/libDPCTLSyclInterface.so"),
        }
    }
}

/// The path of a SYCL runtime in this process.
pub(super) fn sycl() -> Option<PathBuf> {
    shared_library::find(SYCL)
}

/// The major version in the file name of a SYCL runtime.
pub(super) fn version(file: &str) -> Option<u32> {
    let version = file.strip_prefix(SYCL)?.strip_prefix('.')?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_version_is_behind_the_name() {
        assert_eq!(version("libsycl.so.9"), Some(9));
        assert_eq!(version("libsycl.so.8.0.0"), Some(8));
        assert_eq!(version("libsycl.so"), None);
    }
}
