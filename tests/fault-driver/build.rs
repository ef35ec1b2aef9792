//! Sets the linker flags of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // SYCL loads the loader by this name. zeusm and SYCL must share one library, because they exchange handles.
        "-Wl,-soname,libze_loader.so.1",
        // The CPU runtime exports the same symbols, which must not preempt those of this library.
        "-Wl,-Bsymbolic",
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
