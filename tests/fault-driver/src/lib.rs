//! A Level Zero library for tests: it passes every call on to the CPU runtime, except one, which fails without being
//! made.
//!
//! `ZEUSM_RUNTIME=/path/libzeusm_fault_driver.so` has zeusm use it. The CPU runtime behind it is the library that
//! `ZEUSM_CPU_LIBRARY` names, else `libzeusm_cpu.so` beside this one. A test arms the failure with
//! `zeusm_fault_arm`, and asks `zeusm_fault_live` what zeusm made
//! and did not give back.
//!
//! SYCL, which may be in the process, is passed by: its calls neither count nor fail.
#![deny(missing_docs)]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod callers;
mod faults;
mod forward;
mod owned;

use std::env;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// The function of that name in the CPU runtime, where it has one.
fn behind(name: &str) -> Option<*const c_void> {
    static CPU: OnceLock<Library> = OnceLock::new();
    let library = CPU.get_or_init(|| {
        let path = env::var_os("ZEUSM_CPU_LIBRARY").map_or_else(beside, PathBuf::from);
        // SAFETY: opening the CPU runtime runs its initialisers, which may run at any time.
        unsafe { Library::open(Some(&path), libc::RTLD_NOW | libc::RTLD_LOCAL) }
            .unwrap_or_else(|error| panic!("the CPU runtime behind the fault driver: {error}"))
    });
    // SAFETY: the address is not called here; its callers give it the function's own type.
    let found = unsafe { library.get::<*const c_void>(name.as_bytes()) }.ok()?;
    Some(*found)
}

/// The CPU runtime as cargo names it, in the folder of this library.
fn beside() -> PathBuf {
    callers::file_of(beside as *const c_void)
        .expect("this library has a file")
        .with_file_name("libzeusm_cpu.so")
}
