//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // The name under which SYCL's adapters ask for the loader: once loaded, this library is what they get.
        "-Wl,-soname,libze_loader.so.1",
        // Another Level Zero library in the process must not take over this one's calls to itself.
        "-Wl,-Bsymbolic",
        // Worker threads run its code, so the library never goes away.
        "-Wl,-z,nodelete",
        // Run as a program, it is the compiling process: see src/compiler/start.rs.
        "-Wl,-e,zeusm_cpu_compiler",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
