//! Says at once where zeusm cannot be built, in place of errors from deep inside its dependencies.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let (system, width) = (target("OS"), target("POINTER_WIDTH"));
    // Runtimes are found as Linux and Windows do it; addresses are Python's 64-bit integers.
    assert!(
        ["linux", "windows"].contains(&system.as_str()) && width == "64",
        "zeusm is for 64-bit Linux and Windows; this target is {system} with {width} bits"
    );
}
