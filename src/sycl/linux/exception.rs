//! Calls into SYCL that may throw: a C++ exception is returned as an [`Error::Thrown`].
//!
//! A foreign exception can unwind through Rust frames, which cannot catch it, and an exception without a handler terminates
//! the process. The handler is the frame of [`call_with_handler`], whose personality routine catches C++ exceptions only.
//! The functions of the C++ runtime are those that the SYCL runtime itself uses; zeusm does not link to one.
//!
//! Source: Itanium C++ ABI, "Exception Handling", level I (base ABI) and level II (C++ ABI); System V ABI for x86-64.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::os::unix;
use once_cell::race::OnceBox;

use crate::shared_library::symbol;
use crate::sycl::call::{Call, Function};
use crate::sycl::error::Error;

/// The size of `_Unwind_Exception` on x86-64, after which the thrown object begins.
const HEADER: usize = 32;
/// The exception class "GNUCC++\0" of a primary exception. A dependent (rethrown) one ends with 1, and its object is
/// elsewhere.
const PRIMARY: u64 = u64::from_be_bytes(*b"GNUCC++\0");
/// The language in the lower half of the class of all C++ exceptions.
const LANGUAGE: u32 = u32::from_be_bytes(*b"C++\0");
/// The slot of `what()` in the virtual table of `std::exception`, after the two destructors.
const WHAT: usize = 2;

/// The functions of the C++ runtime for catching an exception.
#[derive(Debug, Clone, Copy)]
pub(in crate::sycl) struct Handler {
    begin: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    end: unsafe extern "C-unwind" fn(),
    current_type: unsafe extern "C" fn() -> *const c_void,
    /// `__class_type_info::__do_catch`: whether an object is of a class, and the address of that base object.
    is_of: unsafe extern "C" fn(*const c_void, *const c_void, *mut *mut c_void, c_uint) -> bool,
    /// `typeid(std::exception)`.
    exception: *const c_void,
    unwinder: Unwinder,
}

// SAFETY: these are functions and a static object of a library that is never closed, and any thread may use them.
unsafe impl Send for Handler {}
// SAFETY: as above.
unsafe impl Sync for Handler {}

/// The functions of the unwinder that the personality routine calls.
#[derive(Debug, Clone, Copy)]
struct Unwinder {
    set_register: unsafe extern "C" fn(*mut c_void, c_int, usize),
    set_address: unsafe extern "C" fn(*mut c_void, usize),
    own_data: unsafe extern "C" fn(*mut c_void) -> usize,
}

/// The unwinder of the libsycl in the process.
static UNWINDER: OnceBox<Unwinder> = OnceBox::new();

impl Handler {
    /// Finds the functions in `library` and its dependencies; `None` without a supported C++ runtime.
    pub(super) fn find(library: &unix::Library) -> Option<Self> {
        cfg!(target_arch = "x86_64").then_some(())?;
        // SAFETY: these are the ABI's types of the functions and of the object.
        let found = unsafe {
            Self {
                begin: symbol(library, c"__cxa_begin_catch")?,
                end: symbol(library, c"__cxa_end_catch")?,
                current_type: symbol(library, c"__cxa_current_exception_type")?,
                is_of: symbol(
                    library,
                    c"_ZNK10__cxxabiv117__class_type_info10__do_catchEPKSt9type_infoPPvj",
                )?,
                exception: symbol(library, c"_ZTISt9exception")?,
                unwinder: Unwinder {
                    set_register: symbol(library, c"_Unwind_SetGR")?,
                    set_address: symbol(library, c"_Unwind_SetIP")?,
                    own_data: symbol(library, c"_Unwind_GetLanguageSpecificData")?,
                },
            }
        };
        UNWINDER.get_or_init(|| Box::new(found.unwinder));
        Some(found)
    }

    /// Calls `body`, which calls `function`.
    ///
    /// # Errors
    /// [`Error::Thrown`] with the text of the exception.
    pub(in crate::sycl) fn call<T>(
        &self,
        function: &'static str,
        body: impl FnOnce() -> T,
    ) -> Result<T, Error> {
        let mut call = Call::of(body);
        // SAFETY: the function gets its own call, which outlives it.
        let exception = unsafe { call_with_handler(call.function(), (&raw mut call).cast()) };
        let text = if exception.is_null() {
            None
        } else {
            // SAFETY: the exception has just been caught, on this thread.
            Some(unsafe { self.finish(exception) })
        };
        call.answer(function, text)
    }

    /// Reads the exception's text, and destroys it.
    ///
    /// # Safety
    /// `exception` must have been caught on this thread, and is finished once.
    unsafe fn finish(&self, exception: *mut c_void) -> String {
        // SAFETY: the caller guarantees that the exception was caught on this thread and not destroyed. The object of a
        // primary one follows its header, and `what` is called only if the object is a `std::exception`, whose virtual table
        // has it.
        unsafe {
            (self.begin)(exception);
            let class = (self.current_type)();
            let mut object = exception.byte_add(HEADER);
            let has_text = *exception.cast::<u64>() == PRIMARY
                && (self.is_of)(self.exception, class, &mut object, 1);
            let text = if has_text {
                type What = unsafe extern "C" fn(*const c_void) -> *const c_char;
                let what = **object.cast::<*const [What; WHAT + 1]>();
                CStr::from_ptr(what[WHAT](object))
                    .to_string_lossy()
                    .into_owned()
            } else {
                "an exception without a text".to_owned()
            };
            (self.end)();
            text
        }
    }
}

/// Calls `function` with `data`, and returns the C++ exception that it threw, else null.
///
/// The language-specific data of the frame is its landing pad. The personality routine puts the exception into the first
/// result register.
///
/// # Safety
/// `function` must accept `data`, and [`Handler::find`] must have succeeded.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn call_with_handler(
    function: Function,
    data: *mut c_void,
) -> *mut c_void {
    std::arch::naked_asm!(
        // The encodings 0x9b and 0x1b are 4 bytes relative to the instruction; the first is of a pointer to the routine.
        ".cfi_startproc",
        ".cfi_personality 0x9b, .Lzeusm_sycl_personality",
        ".cfi_lsda 0x1b, .Lzeusm_sycl_landing",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        ".Lzeusm_sycl_landing:",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        ".pushsection .data.rel.ro.zeusm_sycl_personality, \"aw\", @progbits",
        ".balign 8",
        ".Lzeusm_sycl_personality:",
        ".quad {personality}",
        ".popsection",
        personality = sym personality,
    )
}

/// Never called: [`Handler::find`] finds no handler on this architecture.
///
/// # Safety
/// There are no requirements.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn call_with_handler(_: Function, _: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

/// The personality routine of [`call_with_handler`]'s frame.
#[cfg(target_arch = "x86_64")]
extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    const SEARCH: c_int = 1;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE: c_int = 8;
    // Rust's panics and forced unwinding continue.
    let Some(unwinder) = UNWINDER.get().filter(|_| class as u32 == LANGUAGE) else {
        return CONTINUE;
    };
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    // The second phase ends at the first frame with a handler, which this one is.
    // SAFETY: the unwinder passes its own context, in the phase in which it may be modified; register 0 is rax.
    unsafe {
        (unwinder.set_register)(context, 0, exception.expose_provenance());
        (unwinder.set_address)(context, (unwinder.own_data)(context));
    }
    INSTALL_CONTEXT
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
