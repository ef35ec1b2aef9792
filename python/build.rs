//! Tells the crate which interpreter it is built for (`Py_GIL_DISABLED` for a free-threaded one), and has the linker replace the
//! functions of Python's C API that may run Python code by those of `src/parking`.

macro_rules! parked {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];
    };
}
include!("src/parking/functions.rs");

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    println!("cargo:rerun-if-changed=src/parking/functions.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for name in FUNCTIONS {
            println!("cargo:rustc-link-arg=-Wl,--wrap={name}");
        }
    }
}
