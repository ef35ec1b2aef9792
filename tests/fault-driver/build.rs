//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // The name under which SYCL asks for the loader: zeusm and SYCL use one library, as they must.
        "-Wl,-soname,libze_loader.so.1",
        // The CPU runtime exports the same names.
        "-Wl,-Bsymbolic",
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
