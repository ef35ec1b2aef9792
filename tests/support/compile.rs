//! Libraries of C functions in the place of Level Zero's or SYCL's.

use std::path::Path;
use std::process::Command;

/// Compiles a source of this folder to the library `file` in `folder`.
pub fn compile(folder: &Path, file: &str, source: &str, options: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-fexceptions", "-o", file])
        .arg(sources.join(source))
        .args(options)
        .current_dir(folder)
        .status();
    assert!(compiled.unwrap().success(), "{file}");
}
