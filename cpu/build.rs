//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // The name under which SYCL's adapters open the loader: once loaded, this library is the one that they get.
        "-Wl,-soname,libze_loader.so.1",
        // Calls within this library must not be bound to another Level Zero library in the process.
        "-Wl,-Bsymbolic",
        // Worker threads run its code, so the library must not be unloaded.
        "-Wl,-z,nodelete",
        // Run as a program, it is the compiling process: see src/compiler/start.rs.
        "-Wl,-e,zeusm_cpu_compiler",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
