//! Calls into SYCL that may throw: a C++ exception is returned as an [`Error::Thrown`].
//!
//! An exception of Microsoft's C++ is a structured exception of Windows with a code of its own, which Rust cannot catch. The
//! handler is the frame of [`call_with_handler`]. Windows asks it while the frames of the thrower are still there, and it reads
//! the text then.
//!
//! Source: Microsoft's documentation, "x64 exception handling" (language-specific handler) and `RtlUnwindEx`; the structures
//! are those of `ehdata.h` in its C++ runtime.

use std::ffi::{CStr, c_char, c_void};

use windows_sys::Win32::System::Diagnostics::Debug::{
    DISPATCHER_CONTEXT, EXCEPTION_RECORD, RtlUnwindEx,
};
use windows_sys::Win32::System::Kernel::{EXCEPTION_DISPOSITION, ExceptionContinueSearch};

use crate::sycl::call::{Call, Function};
use crate::sycl::error::Error;

/// The code of an exception of C++: "msc" with the bits of a program's own error.
const CPP: u32 = 0xe06d_7363;
/// `EXCEPTION_UNWINDING` and `EXCEPTION_EXIT_UNWIND`: the second phase, in which frames clean up.
const UNWINDING: u32 = 2 | 4;
/// `typeid(std::exception).raw_name()`.
const EXCEPTION: &CStr = c".?AVexception@std@@";
/// The slot of `what()` in the virtual table of `std::exception`, after the destructor.
const WHAT: usize = 1;

/// Catches exceptions of C++. Windows itself has what is needed.
#[derive(Debug, Clone, Copy)]
pub(in crate::sycl) struct Handler;

impl Handler {
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
        let text = unsafe { call_with_handler(call.function(), (&raw mut call).cast()) };
        // SAFETY: the text, if there is one, comes from the routine below, and is taken once.
        let text = (!text.is_null()).then(|| unsafe { *Box::from_raw(text.cast::<String>()) });
        call.answer(function, text)
    }
}

/// Calls `function` with `data`, and returns its null, or the text of the exception that it threw.
///
/// # Safety
/// `function` must accept `data`.
#[unsafe(naked)]
unsafe extern "C-unwind" fn call_with_handler(
    function: Function,
    data: *mut c_void,
) -> *mut c_void {
    std::arch::naked_asm!(
        ".seh_proc {this}",
        ".seh_handler {routine}, @except, @unwind",
        // The callee's space for four arguments, and the alignment.
        "sub rsp, 40",
        ".seh_stackalloc 40",
        ".seh_endprologue",
        "mov rax, rcx",
        "mov rcx, rdx",
        "call rax",
        // It is here that the routine continues, with the text in rax. An epilogue directly after a call would be taken for
        // the caller's.
        "nop",
        "add rsp, 40",
        "ret",
        ".seh_endproc",
        this = sym call_with_handler,
        routine = sym routine,
    )
}

/// The language-specific handler of [`call_with_handler`]'s frame.
///
/// # Safety
/// Windows calls it, with what belongs to an exception.
unsafe extern "C-unwind" fn routine(
    exception: *mut EXCEPTION_RECORD,
    frame: *const c_void,
    _context: *mut c_void,
    dispatcher: *mut DISPATCHER_CONTEXT,
) -> EXCEPTION_DISPOSITION {
    // SAFETY: Windows passes valid structures. In the first phase, a handler may end the search by unwinding to its own frame;
    // the frame continues after its call, with the result of the call in rax.
    unsafe {
        let (exception, dispatcher) = (&*exception, &*dispatcher);
        // Rust's panics have another code.
        if exception.ExceptionCode as u32 != CPP || exception.ExceptionFlags & UNWINDING != 0 {
            return ExceptionContinueSearch;
        }
        let text = Thrown::of(exception).map_or_else(String::new, |thrown| thrown.finish());
        RtlUnwindEx(
            frame,
            std::ptr::with_exposed_provenance(dispatcher.ControlPc as usize),
            exception,
            Box::into_raw(Box::new(text)).cast(),
            dispatcher.ContextRecord,
            dispatcher.HistoryTable,
        );
    }
    ExceptionContinueSearch // Not reached: the frame continues.
}

/// An object that was thrown, with the description that the compiler has made of its classes. Addresses in it are relative to
/// `base`.
struct Thrown<'a> {
    object: *mut c_void,
    info: &'a ThrowInfo,
    base: *const c_void,
}

#[repr(C)]
struct ThrowInfo {
    attributes: u32,
    destructor: u32,
    forward: u32,
    classes: u32,
}

/// A class that the object can be caught as. An offset of a virtual base of -1 means none.
#[repr(C)]
struct Class {
    properties: u32,
    description: u32,
    offset: i32,
    virtual_base: i32,
}

/// The description of a class, whose name follows it.
#[repr(C)]
struct Description {
    table: *const c_void,
    spare: *const c_void,
    name: [c_char; 0],
}

impl Thrown<'_> {
    /// `None` for an exception that is thrown again: the C++ runtime has its object.
    ///
    /// # Safety
    /// The exception must be one of C++.
    unsafe fn of(exception: &EXCEPTION_RECORD) -> Option<Self> {
        let [_, object, info, base, ..] = exception.ExceptionInformation;
        let is_known = exception.NumberParameters == 4 && object != 0 && info != 0;
        // SAFETY: an exception of C++ has these parameters; the description is part of a loaded library.
        is_known.then(|| unsafe {
            Self {
                object: std::ptr::with_exposed_provenance_mut(object),
                info: &*std::ptr::with_exposed_provenance(info),
                base: std::ptr::with_exposed_provenance(base),
            }
        })
    }

    fn at<T>(&self, offset: u32) -> *const T {
        self.base.wrapping_byte_add(offset as usize).cast()
    }

    /// Reads the text, and destroys the object.
    ///
    /// # Safety
    /// The object must be alive.
    unsafe fn finish(self) -> String {
        // SAFETY: the object is of its classes, and is not used any more by others. The destructor is a method without
        // arguments.
        unsafe {
            let text = self.text();
            if self.info.destructor != 0 {
                let destroy = self.at::<c_void>(self.info.destructor);
                let destroy: unsafe extern "C" fn(*mut c_void) = std::mem::transmute(destroy);
                destroy(self.object);
            }
            text.unwrap_or_else(|| "an exception without a text".to_owned())
        }
    }

    /// What `what()` returns, if the object is a `std::exception`.
    ///
    /// # Safety
    /// The object must be alive.
    unsafe fn text(&self) -> Option<String> {
        type What = unsafe extern "C" fn(*const c_void) -> *const c_char;
        // SAFETY: the list of classes begins with their number; each has a description, whose name is a C string. A
        // `std::exception` begins with its virtual table, which has `what`.
        unsafe {
            let classes = self.at::<u32>(self.info.classes);
            let mut classes = (1..=*classes as usize).map(|n| &*self.at::<Class>(*classes.add(n)));
            let class = classes.find(|class| {
                let name = (&raw const (*self.at::<Description>(class.description)).name).cast();
                class.virtual_base == -1 && CStr::from_ptr(name) == EXCEPTION
            })?;
            let object = self.object.byte_offset(class.offset as isize);
            let what = **object.cast::<*const [What; WHAT + 1]>();
            let text = CStr::from_ptr(what[WHAT](object));
            Some(text.to_string_lossy().into_owned())
        }
    }
}

#[cfg(test)]
mod tests;
