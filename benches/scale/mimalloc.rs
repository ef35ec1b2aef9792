//! mimalloc, an allocator of host memory for many threads.

use std::env;
use std::ffi::c_void;

use libloading::Library;

/// The environment variable that names mimalloc's library.
const VARIABLE: &str = "ZEUSM_MIMALLOC_LIBRARY";

pub struct Mimalloc {
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    /// Keeps the functions loaded.
    _library: Library,
}

impl Mimalloc {
    /// `None` when [`VARIABLE`] is not set, or empty.
    pub fn open() -> Option<Self> {
        let path = env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        // SAFETY: opening the library only initialises its own state, and the types are those of mimalloc's header.
        unsafe {
            let library = Library::new(path).unwrap();
            Some(Self {
                malloc: *library.get("mi_malloc").unwrap(),
                free: *library.get("mi_free").unwrap(),
                _library: library,
            })
        }
    }

    pub fn allocate(&self, size: usize) -> Memory<'_> {
        // SAFETY: any size may be requested.
        let address = unsafe { (self.malloc)(size) };
        assert!(!address.is_null());
        Memory {
            address,
            mimalloc: self,
        }
    }
}

/// Memory of mimalloc, freed when it is dropped.
pub struct Memory<'a> {
    address: *mut c_void,
    mimalloc: &'a Mimalloc,
}

// SAFETY: mimalloc frees memory on any thread.
unsafe impl Send for Memory<'_> {}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory came from mimalloc, and is freed once.
        unsafe { (self.mimalloc.free)(self.address) };
    }
}
