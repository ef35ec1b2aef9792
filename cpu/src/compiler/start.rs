//! The entry point of this library when it is run as a program.
//!
//! The linker makes [`zeusm_cpu_compiler`] the library's entry point. `dlopen` ignores the entry point of a library;
//! when the dynamic linker runs the library as a program, the process starts there, in the state that the System V ABI
//! describes: the argument count on top of the stack, the arguments behind it, and in `rdx` a function for the C
//! library to call at exit.

use std::arch::naked_asm;
use std::ffi::{c_char, c_int};

use super::{server, supervisor};

/// The entry point of the library run as a program: calls the C library's start-up function, which calls [`run`].
///
/// # Safety
/// Only the dynamic linker may jump here, at the start of a process.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeusm_cpu_compiler() -> ! {
    // __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), with no init and fini of our own.
    naked_asm!(
        "xor ebp, ebp",
        "mov r9, rdx",
        "mov rsi, [rsp]",
        "lea rdx, [rsp + 8]",
        "and rsp, -16",
        "xor ecx, ecx",
        "xor r8d, r8d",
        "push rsp",
        "push rsp",
        "lea rdi, [rip + {main}]",
        "call qword ptr [rip + {start}@GOTPCREL]",
        "ud2",
        main = sym run,
        start = sym __libc_start_main,
    )
}

unsafe extern "C" {
    fn __libc_start_main() -> c_int;
}

/// The process's `main`.
extern "C" fn run(_count: c_int, _arguments: *const *const c_char) -> c_int {
    let served = supervisor::enter().and_then(|()| server::serve());
    let code = c_int::from(served.is_err());
    // SAFETY: ends the process at once. Exit handlers could hang after the compiler processed a corrupt module.
    unsafe { libc::_exit(code) }
}
