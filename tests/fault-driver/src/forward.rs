//! Forwarding of the exported functions, independent of their signatures.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::{callers, faults, held, owned};

/// The decision about a call, in the two result registers of the C ABI.
#[repr(C)]
struct Decision {
    /// The function to jump to; 0 to return.
    target: usize,
    /// The result code to return.
    answer: usize,
}

/// Decides whether a call of the function with this index in [`NAMES`] is forwarded or fails; `object` is its first argument.
extern "C" fn decide(index: usize, caller: *const c_void, object: usize) -> Decision {
    let name = NAMES[index];
    let ours = index >= FIRST_THAT_FAILS && !callers::is_sycl(caller);
    if ours && let Some(code) = faults::fails(name, object) {
        return Decision {
            target: 0,
            answer: code as usize,
        };
    }
    let own = || owned::function(name).or_else(|| held::function(name));
    match ours.then(own).flatten().or_else(|| crate::behind(name)) {
        Some(function) => Decision {
            target: function as usize,
            answer: 0,
        },
        None => Decision {
            target: 0,
            answer: level_zero_sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE.0 as usize,
        },
    }
}

/// The common entry of all forwarded functions, with the index in `eax`: jumps to the function of the CPU runtime with all
/// arguments in place, or returns a result.
///
/// # Safety
/// Only for the functions that [`forward!`] makes.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        // Saves the argument registers, and rax to keep the stack aligned to 16 bytes.
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "mov rdx, rdi",
        "mov edi, eax",
        // The return address, above the seven saved registers.
        "mov rsi, [rsp + 56]",
        "call {decide}",
        "mov r11, rax",
        "mov r10, rdx",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test r11, r11",
        "jz 2f",
        "jmp r11",
        "2:",
        "mov rax, r10",
        "ret",
        decide = sym decide,
    )
}

/// Exports functions that [`enter`] forwards. Those of the second list are counted and can fail.
macro_rules! forward {
    (pass { $($passed:ident)* } count { $($counted:ident)* }) => {
        #[allow(non_camel_case_types)]
        enum Number {
            $($passed,)*
            First,
            $($counted,)*
        }

        /// The names by index.
        const NAMES: &[&str] = &[$(stringify!($passed),)* "", $(stringify!($counted),)*];
        const FIRST_THAT_FAILS: usize = Number::First as usize;

        $(forward!($passed);)*
        $(forward!($counted);)*
    };
    ($name:ident) => {
        /// Forwards the call, or returns the injected result code.
        ///
        /// # Safety
        /// As for the function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov eax, {number}",
                "jmp {enter}",
                number = const Number::$name as u32,
                enter = sym enter,
            )
        }
    };
}

// The names that the loader exports.
include!(concat!(env!("OUT_DIR"), "/forward.rs"));
