//! The driver library: its functions, and its results as errors.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use once_cell::race::OnceBox;

use super::Error;

/// The name under which NVIDIA's driver installs the library.
const NAME: &str = "libcuda.so.1";

/// The result of success.
const SUCCESS: c_int = 0;

/// `CUdeviceptr`.
pub(super) type DevicePointer = c_ulonglong;
/// `CUcontext` and `CUstream`: opaque pointers.
pub(super) type Handle = *mut c_void;

/// `CUmemorytype`: host and device.
pub(super) const HOST: c_uint = 1;
pub(super) const DEVICE: c_uint = 2;

/// `CUDA_MEMCPY2D_v2`: rows of `width` bytes.
#[repr(C)]
pub(super) struct Rows {
    pub(super) source_x: usize,
    pub(super) source_y: usize,
    pub(super) source_type: c_uint,
    pub(super) source_host: *const c_void,
    pub(super) source_device: DevicePointer,
    pub(super) source_array: *const c_void,
    pub(super) source_pitch: usize,
    pub(super) destination_x: usize,
    pub(super) destination_y: usize,
    pub(super) destination_type: c_uint,
    pub(super) destination_host: *mut c_void,
    pub(super) destination_device: DevicePointer,
    pub(super) destination_array: *const c_void,
    pub(super) destination_pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

macro_rules! driver {
    ($($field:ident = $name:literal ($($type:ty),*);)*) => {
        /// The functions of the library that copies need.
        pub(super) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($type),*) -> c_int,)*
            _library: libloading::Library,
        }

        impl Driver {
            fn of(library: libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the types are those of the driver's documentation for these names.
                    $($field: *unsafe { library.get::<unsafe extern "C" fn($($type),*) -> c_int>($name.as_bytes()) }?,)*
                    _library: library,
                })
            }
        }
    };
}

driver! {
    init = "cuInit" (c_uint);
    error_name = "cuGetErrorName" (c_int, *mut *const c_char);
    pointer_attribute = "cuPointerGetAttribute" (*mut c_void, c_int, DevicePointer);
    retain_primary = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    release_primary = "cuDevicePrimaryCtxRelease_v2" (c_int);
    push_context = "cuCtxPushCurrent_v2" (Handle);
    pop_context = "cuCtxPopCurrent_v2" (*mut Handle);
    synchronize_context = "cuCtxSynchronize" ();
    synchronize_stream = "cuStreamSynchronize" (Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2" (*mut c_void, DevicePointer, usize, Handle);
    copy_to_device = "cuMemcpyHtoDAsync_v2" (DevicePointer, *const c_void, usize, Handle);
    copy_rows = "cuMemcpy2DAsync_v2" (*const Rows, Handle);
}

impl Driver {
    /// The library, opened and initialised once.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Call`]; the next call tries again.
    pub(super) fn get() -> Result<&'static Self, Error> {
        static DRIVER: OnceBox<Driver> = OnceBox::new();
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        let failed = |error: libloading::Error| {
            Error::Library(
                std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), ToString::to_string),
            )
        };
        // SAFETY: opening the driver library only runs its initialisers.
        let library = unsafe { libloading::Library::new(NAME) }.map_err(failed)?;
        let driver = Self::of(library).map_err(failed)?;
        // SAFETY: the flags must be 0; the function may be called several times.
        driver.check("cuInit", unsafe { (driver.init)(0) })?;
        Ok(DRIVER.get_or_init(|| Box::new(driver)))
    }

    /// The result of a function as an error.
    pub(super) fn check(&self, function: &'static str, code: c_int) -> Result<(), Error> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: `name` is written for known results only; it is a static string of the library.
        let name = unsafe {
            if (self.error_name)(code, &raw mut name) == SUCCESS && !name.is_null() {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            } else {
                "an unknown result".to_owned()
            }
        };
        Err(Error::Call {
            function,
            name,
            code,
        })
    }
}
