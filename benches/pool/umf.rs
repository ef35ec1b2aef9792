//! UMF's disjoint pool, from which the SYCL runtime allocates, over UMF's own Level Zero provider.

use std::env;
use std::ffi::c_void;
use std::ptr;

use libloading::Library;
use zeusm::usm::LevelZeroProvider;
use zeusm::{UsmKind, sys};

/// The environment variable that names UMF's library.
pub const VARIABLE: &str = "ZEUSM_UMF_LIBRARY";

/// The largest pooled block. This and the following are the parameters that SYCL's adapter sets for device memory.
pub const LARGEST_POOLED: usize = 4 << 20;
const SMALLEST_BLOCK: usize = 512;
const SMALLEST_SLAB: usize = 64 << 10;
const SLABS_KEPT: usize = 4;

/// An opaque handle of UMF.
type Handle = *mut c_void;
/// `umf_result_t`; 0 is success.
type Status = i32;
type Create = unsafe extern "C" fn(*mut Handle) -> Status;
type Destroy = unsafe extern "C" fn(Handle) -> Status;
type Set<T> = unsafe extern "C" fn(Handle, T) -> Status;
type Operations = unsafe extern "C" fn() -> *const c_void;
type CreateProvider = unsafe extern "C" fn(*const c_void, Handle, *mut Handle) -> Status;
type CreatePool = unsafe extern "C" fn(*const c_void, Handle, Handle, u32, *mut Handle) -> Status;

/// A disjoint pool, configured for any kind of memory as SYCL's adapter configures it for device memory.
pub struct Umf {
    pool: Handle,
    provider: Handle,
    malloc: unsafe extern "C" fn(Handle, usize) -> *mut c_void,
    free: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    /// Keeps the functions loaded.
    library: Library,
}

// SAFETY: UMF's handles may be used from any thread; the rest are functions.
unsafe impl Sync for Umf {}

fn check(status: Status) {
    assert_eq!(status, 0, "UMF's status");
}

/// The function of this name.
///
/// # Safety
/// `T` must be the type that UMF's headers give the function.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> T {
    // SAFETY: the caller guarantees the type.
    unsafe { *library.get::<T>(name).unwrap() }
}

impl Umf {
    /// A pool over the same memory as `provider`; `None` when [`VARIABLE`] is not set.
    pub fn open(provider: &LevelZeroProvider) -> Option<Self> {
        let path = env::var_os(VARIABLE)?;
        // SAFETY: opening UMF's library only initialises its own state, and the types below are those of its headers.
        // UMF finds Level Zero by the name of the library, which is already open.
        unsafe {
            let library = Library::new(path).unwrap();
            let provider = level_zero(&library, provider);
            let pool = disjoint(&library, provider);
            Some(Self {
                pool,
                provider,
                malloc: symbol(&library, "umfPoolMalloc"),
                free: symbol(&library, "umfPoolFree"),
                library,
            })
        }
    }

    /// Allocates `size` bytes.
    pub fn allocate(&self, size: usize) -> Memory<'_> {
        // SAFETY: the pool is open.
        let address = unsafe { (self.malloc)(self.pool, size) };
        assert!(!address.is_null());
        Memory { address, umf: self }
    }
}

/// Memory of a pool of UMF, freed when it is dropped.
pub struct Memory<'a> {
    address: *mut c_void,
    umf: &'a Umf,
}

// SAFETY: UMF frees memory on any thread.
unsafe impl Send for Memory<'_> {}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory came from this pool, which outlives it.
        check(unsafe { (self.umf.free)(self.umf.pool, self.address) });
    }
}

impl Drop for Umf {
    fn drop(&mut self) {
        // SAFETY: nothing is allocated from the pool, and this is its last use.
        unsafe {
            check(symbol::<Destroy>(&self.library, "umfPoolDestroy")(
                self.pool,
            ));
            check(symbol::<Destroy>(&self.library, "umfMemoryProviderDestroy")(self.provider));
        }
    }
}

/// UMF's provider over the same memory.
///
/// # Safety
/// `library` must be UMF's.
unsafe fn level_zero(library: &Library, memory: &LevelZeroProvider) -> Handle {
    const PREFIX: &str = "umfLevelZeroMemoryProvider";
    let name = |rest: &str| format!("{PREFIX}{rest}");
    let kind: i32 = match memory.kind() {
        UsmKind::Host => 1,
        UsmKind::Device => 2,
        UsmKind::Shared => 3,
    };
    let (mut parameters, mut provider) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the types are those of UMF's header; context and device outlive the provider.
    unsafe {
        let create: Create = symbol(library, &name("ParamsCreate"));
        check(create(&mut parameters));
        let set: Set<sys::ze_context_handle_t> = symbol(library, &name("ParamsSetContext"));
        check(set(parameters, memory.context().handle()));
        if memory.kind() != UsmKind::Host {
            let set: Set<sys::ze_device_handle_t> = symbol(library, &name("ParamsSetDevice"));
            check(set(parameters, memory.device().handle()));
        }
        let set: Set<i32> = symbol(library, &name("ParamsSetMemoryType"));
        check(set(parameters, kind));
        let operations: Operations = symbol(library, &name("Ops"));
        let create: CreateProvider = symbol(library, "umfMemoryProviderCreate");
        check(create(operations(), parameters, &mut provider));
        let destroy: Destroy = symbol(library, &name("ParamsDestroy"));
        check(destroy(parameters));
    }
    provider
}

/// A disjoint pool over `provider`.
///
/// # Safety
/// `library` must be UMF's, and `provider` one of its providers.
unsafe fn disjoint(library: &Library, provider: Handle) -> Handle {
    const PREFIX: &str = "umfDisjointPool";
    let name = |rest: &str| format!("{PREFIX}{rest}");
    let (mut parameters, mut pool) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the types are those of UMF's header.
    unsafe {
        let create: Create = symbol(library, &name("ParamsCreate"));
        check(create(&mut parameters));
        for (what, value) in [
            ("ParamsSetMinBucketSize", SMALLEST_BLOCK),
            ("ParamsSetSlabMinSize", SMALLEST_SLAB),
            ("ParamsSetMaxPoolableSize", LARGEST_POOLED),
            ("ParamsSetCapacity", SLABS_KEPT),
        ] {
            let set: Set<usize> = symbol(library, &name(what));
            check(set(parameters, value));
        }
        let operations: Operations = symbol(library, &name("Ops"));
        let create: CreatePool = symbol(library, "umfPoolCreate");
        check(create(operations(), provider, parameters, 0, &mut pool));
        let destroy: Destroy = symbol(library, &name("ParamsDestroy"));
        check(destroy(parameters));
    }
    pool
}
