//! Says at once where zeusm cannot be built, in place of errors from deep inside its dependencies.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let (system, width) = (target("OS"), target("POINTER_WIDTH"));
    // Runtimes are chosen by ELF names (SONAME) and Linux's device nodes; addresses are Python's 64-bit integers.
    assert!(
        system == "linux" && width == "64",
        "zeusm is for 64-bit Linux; this target is {system} with {width} bits"
    );
}
