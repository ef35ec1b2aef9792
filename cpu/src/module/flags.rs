//! Build flags of Level Zero as build options of OpenCL.

/// Converts Level Zero's build flags to OpenCL options. Flags about a GPU's registers and addressing are dropped;
/// options that are not Level Zero's are passed to the compiler.
///
/// Source: `ze_module_desc_t` and the build options in the core programming guide, "Module build options".
pub fn options(flags: &str) -> String {
    let mut options: Vec<&str> = Vec::new();
    let mut words = flags.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-ze-opt-disable" | "-ze-opt-level=0" | "-ze-opt-level=O0" => {
                options.push("-cl-opt-disable")
            }
            "-ze-fp32-correctly-rounded-divide-sqrt" => {
                options.push("-cl-fp32-correctly-rounded-divide-sqrt");
            }
            // Options for the GPU's compiler, in quotes behind it.
            "-igc_opts" => skip_quoted(&mut words),
            // Those that Intel MPI's and oneCCL's modules bring: Intel's compiler knows them, OpenCL's refuses the module.
            "-cl-take-global-address" | "-library-compilation" => {}
            _ if word.starts_with("-ze-") => {}
            _ => options.push(word),
        }
    }
    options.join(" ")
}

/// The flags as Intel's driver passes them to its compiler, and leaves them in the native binary, where the conformance tests
/// look for levels of optimisation.
pub fn spelled(flags: &str) -> String {
    let words = flags.split_whitespace().map(|word| match word {
        "-ze-opt-level=0" => "-ze-opt-level=O0",
        "-ze-opt-level=1" => "-ze-opt-level=O1",
        "-ze-opt-level=2" => "-ze-opt-level=O2",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The options for a module with atomic operations, of which those on generic pointers and doubles are of OpenCL C 2.0 and later.
/// The compiler takes SPIR-V for OpenCL C 1.2 unless it is told otherwise.
pub fn with_opencl_2(options: &str) -> String {
    if options.contains("-cl-std=") {
        return options.to_owned();
    }
    format!("{options} -cl-std=CL2.0").trim_start().to_owned()
}

/// Skips one argument, which may be quoted and hold blanks.
fn skip_quoted<'a>(words: &mut impl Iterator<Item = &'a str>) {
    let Some(first) = words.next() else { return };
    let Some(quote) = first
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))
    else {
        return;
    };
    let closed = |word: &str| word.ends_with(quote);
    if first.len() < 2 || !closed(first) {
        words.find(|word| closed(word));
    }
}

#[cfg(test)]
mod tests;
