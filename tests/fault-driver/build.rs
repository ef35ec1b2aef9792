//! Sets the linker flags of the shared library, and lists what it exports: all that the loader does.

use std::path::PathBuf;
use std::{env, fs, io};

/// The names that the loader exports.
const NAMES: &str = "../../cpu/src/ddi/loader-1.32.txt";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={NAMES}");
    for argument in [
        // SYCL loads the loader by this name. zeusm and SYCL must share one library, because they exchange handles.
        "-Wl,-soname,libze_loader.so.1",
        // The CPU runtime exports the same symbols, which must not preempt those of this library.
        "-Wl,-Bsymbolic",
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
    let names = fs::read_to_string(NAMES)?;
    let is_counted = |name: &&str| {
        let is_of_the_api =
            name.starts_with("ze") && name[2..].starts_with(|it: char| it.is_uppercase());
        is_of_the_api && !name.ends_with("ProcAddrTable") && !name.starts_with("zeLoader")
    };
    let (counted, passed): (Vec<_>, Vec<_>) = names.lines().partition(is_counted);
    let code = format!(
        "forward! {{ pass {{ {} }} count {{ {} }} }}\n",
        passed.join(" "),
        counted.join(" ")
    );
    let out = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    fs::write(out.join("forward.rs"), code)
}
