//! A Level Zero library for fault injection: it forwards every call to the CPU runtime, except one, which fails.
//!
//! `ZEUSM_RUNTIME=/path/libzeusm_fault_driver.so` selects it as zeusm's runtime. It forwards to the library in
//! `ZEUSM_CPU_LIBRARY`, by default to `libzeusm_cpu.so` in its own folder. A test arms the failure with `zeusm_fault_arm`
//! and reads the live objects from `zeusm_fault_live`. `zeusm_fault_hold` keeps an operation in flight until the test calls
//! `zeusm_fault_release`.
//!
//! Calls by SYCL in the same process are forwarded, but not counted, and never fail.
#![deny(missing_docs)]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod callers;
mod faults;
mod forward;
mod held;
mod owned;

use std::env;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// The function of this name in the CPU runtime, if it exports one.
fn behind(name: &str) -> Option<*const c_void> {
    static CPU: OnceLock<Library> = OnceLock::new();
    let library = CPU.get_or_init(|| {
        let path = env::var_os("ZEUSM_CPU_LIBRARY").map_or_else(beside, PathBuf::from);
        // SAFETY: opening the CPU runtime only runs its initialisers.
        unsafe { Library::open(Some(&path), libc::RTLD_NOW | libc::RTLD_LOCAL) }
            .unwrap_or_else(|error| panic!("the CPU runtime behind the fault driver: {error}"))
    });
    // SAFETY: any symbol can be read as an address; the callers cast it to the function's type.
    let found = unsafe { library.get::<*const c_void>(name.as_bytes()) }.ok()?;
    Some(*found)
}

/// The path of the CPU runtime in the folder of this library, where cargo puts both.
fn beside() -> PathBuf {
    callers::shared_library::path_of(beside as *const c_void)
        .expect("this library has a file")
        .with_file_name("libzeusm_cpu.so")
}
