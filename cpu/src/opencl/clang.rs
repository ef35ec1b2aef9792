//! OpenCL C to SPIR-V, by the front end of Intel's OpenCL, a library beside it. OpenCL itself hands out no SPIR-V of a source.
//!
//! The front end of 2026.2 emits SPIR-V; that of 2025.1 does not.
//!
//! Source: `common_clang.h` of opencl-clang, which Intel's OpenCL and graphics compilers share.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use libloading::Library;

use super::Runtime;

/// The library.
const LIBRARY: &str = "libcommon_clang.so";

/// The extensions of SPIR-V that a translation may use: Intel's OpenCL refuses those that its front end would use by default.
const EXTENSIONS: &str = "-all,+SPV_INTEL_subgroups,+SPV_EXT_shader_atomic_float_add,+SPV_EXT_shader_atomic_float_min_max";

/// The version of OpenCL C where the options name none.
const VERSION: &CStr = c"300";

/// `Compile`: source; headers, their number and names; precompiled headers and their size; options, further options, version; result.
type Compile = unsafe extern "C" fn(
    *const c_char,
    *const *const c_char,
    u32,
    *const *const c_char,
    *const c_char,
    usize,
    *const c_char,
    *const c_char,
    *const c_char,
    *mut *mut Translated,
) -> c_int;

/// `IOCLFEBinaryResult`, an object of C++: it begins with the address of the table of its methods.
#[repr(C)]
struct Translated {
    methods: *const Methods,
}

/// The methods in the order of their declaration.
#[repr(C)]
struct Methods {
    size: unsafe extern "C" fn(*const Translated) -> usize,
    code: unsafe extern "C" fn(*const Translated) -> *const u8,
    name: *const c_void,
    kind: *const c_void,
    log: unsafe extern "C" fn(*const Translated) -> *const c_char,
    release: unsafe extern "C" fn(*mut Translated),
}

/// Translates a source with OpenCL's build options.
///
/// # Errors
/// The front end's log, or why there is none.
pub fn translate(runtime: &Runtime, source: &str, options: &str) -> Result<Vec<u8>, String> {
    let path = runtime.path().with_file_name(LIBRARY);
    let failed = |error: libloading::Error| format!("{}: {error}", path.display());
    let extensions = runtime.properties.extensions.iter();
    let extensions: String = extensions.map(|name| format!(",+{name}")).collect();
    let further = format!("-emit-spirv -spirv-ext={EXTENSIONS} -cl-ext=-all{extensions}");
    let [source, options, further] =
        [source, options, &further].map(|text| CString::new(text).unwrap_or_default());
    let mut result = ptr::null_mut();
    // SAFETY: the function has this type; there are no headers; strings and place live during the call. The result is valid until it
    // is released, and its methods are those of the header.
    unsafe {
        let library = Library::new(&path).map_err(failed)?;
        let compile = library.get::<Compile>(c"Compile").map_err(failed)?;
        let code = compile(
            source.as_ptr(),
            ptr::null(),
            0,
            ptr::null(),
            ptr::null(),
            0,
            options.as_ptr(),
            further.as_ptr(),
            VERSION.as_ptr(),
            &raw mut result,
        );
        // The library cannot be unloaded safely.
        std::mem::forget(library);
        if result.is_null() {
            return Err(format!("{}: Compile answered {code}", path.display()));
        }
        let methods = &*(*result).methods;
        let answer = if code == 0 {
            let (start, size) = ((methods.code)(result), (methods.size)(result));
            Ok(std::slice::from_raw_parts(start, size).to_vec())
        } else {
            let log = (methods.log)(result);
            let log = (!log.is_null()).then(|| CStr::from_ptr(log).to_string_lossy());
            Err(log.unwrap_or_default().into_owned())
        };
        (methods.release)(result);
        answer
    }
}
