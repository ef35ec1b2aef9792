//! Generates the bindings from the installed Level Zero headers.
//!
//! One bindgen pass over `ze_api.h` and `ze_ddi.h` generates four files: the types, the table of functions to look up at run
//! time, the names of the result codes, and compile-time checks of the declarations in `src/extensions.rs`. The last three
//! are derived from bindgen's output, so newer headers extend them without a change here.

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bindgen::callbacks::{EnumVariantValue, ParseCallbacks};

/// Environment variable with the folder that holds `level_zero/ze_api.h` (or `ze_api.h` itself).
const INCLUDE_VARIABLE: &str = "LEVEL_ZERO_INCLUDE_DIR";

/// The handwritten declarations.
const EXTENSIONS: &str = "src/extensions.rs";

/// Collects the name and value of every variant of `ze_result_t` during the bindgen pass.
#[derive(Debug, Clone, Default)]
struct Results(Rc<RefCell<Vec<(String, i64)>>>);

impl ParseCallbacks for Results {
    fn enum_variant_name(
        &self,
        enum_name: Option<&str>,
        variant: &str,
        value: EnumVariantValue,
    ) -> Option<String> {
        // FORCE_UINT32 only widens the C enum; no call returns it.
        if enum_name.is_some_and(|name| name.ends_with("_ze_result_t"))
            && !variant.ends_with("FORCE_UINT32")
        {
            let number = match value {
                EnumVariantValue::Signed(number) => number,
                EnumVariantValue::Unsigned(number) => number.cast_signed(),
                EnumVariantValue::Boolean(bit) => i64::from(bit),
            };
            let mut seen = self.0.borrow_mut();
            if !seen.iter().any(|(_, known)| *known == number) {
                seen.push((variant.to_owned(), number));
            }
        }
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={EXTENSIONS}");
    println!("cargo:rerun-if-env-changed={INCLUDE_VARIABLE}");
    let headers = find_headers()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let results = Results::default();
    bindgen::Builder::default()
        .header_contents(
            "level_zero_sys.h",
            "#include <ze_api.h>\n#include <ze_ddi.h>\n",
        )
        .clang_arg(format!("-I{}", headers.display()))
        .allowlist_item("_?[zZ][eE]_.*")
        .default_enum_style(bindgen::EnumVariation::NewType {
            is_bitfield: false,
            is_global: true,
        })
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(true)
        // No extern blocks: the crate links no Level Zero library, so a direct call would fail at link time.
        .with_codegen_config(bindgen::CodegenConfig::TYPES | bindgen::CodegenConfig::VARS)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .parse_callbacks(Box::new(results.clone()))
        .generate()?
        .write_to_file(out.join("bindings.rs"))?;
    let bindings = fs::read_to_string(out.join("bindings.rs"))?;
    fs::write(out.join("functions.rs"), function_table(&bindings)?)?;
    let checks = extension_checks(&fs::read_to_string(EXTENSIONS)?, &bindings)?;
    fs::write(out.join("extension_checks.rs"), checks)?;
    fs::write(out.join("results.rs"), result_names(&results.0.borrow())?)?;
    Ok(())
}

/// The folder with `ze_api.h`, from the environment variable if it is set, otherwise from pkg-config or the system's include
/// path.
fn find_headers() -> Result<PathBuf, Box<dyn Error>> {
    let mut candidates = Vec::new();
    if let Some(folder) = env::var_os(INCLUDE_VARIABLE) {
        candidates.push(PathBuf::from(folder));
    } else {
        for package in ["level-zero", "libze_loader"] {
            if let Ok(library) = pkg_config::Config::new()
                .cargo_metadata(false)
                .probe(package)
            {
                candidates.extend(library.include_paths);
            }
        }
        candidates.extend(["/usr/include", "/usr/local/include"].map(PathBuf::from));
    }
    candidates
        .iter()
        .flat_map(|folder| [folder.join("level_zero"), folder.clone()])
        .find(|folder| is_header_folder(folder))
        .ok_or_else(|| {
            format!(
                "no level_zero/ze_api.h in {candidates:?}: install libze-dev (Debian, Ubuntu) or \
                 level-zero-devel (Fedora), or set {INCLUDE_VARIABLE}"
            )
            .into()
        })
}

fn is_header_folder(folder: &Path) -> bool {
    folder.join("ze_api.h").is_file() && folder.join("ze_ddi.h").is_file()
}

/// Generates a struct with an optional pointer for each function in the headers, and its constructor.
fn function_table(bindings: &str) -> Result<String, Box<dyn Error>> {
    let mut fields = String::new();
    let mut lookups = String::new();
    // ze_ddi.h names the type of zeMemFree ze_pfnMemFree_t. The tracing callbacks of ze_api.h (..Cb_t) and the functions that
    // drivers export for the loader (ze_pfnGet*ProcAddrTable_t) are not part of the API for callers.
    let names = bindings.lines().filter_map(|line| {
        let name = line
            .trim()
            .strip_prefix("pub type ze_pfn")?
            .split_once("_t =")?
            .0;
        (!name.ends_with("Cb") && !name.ends_with("ProcAddrTable")).then_some(name)
    });
    for name in names {
        let (function, pointer) = (format!("ze{name}"), format!("ze_pfn{name}_t"));
        writeln!(
            fields,
            "    /// `{function}`; `None` if the library lacks it."
        )?;
        writeln!(fields, "    pub {function}: {pointer},")?;
        writeln!(
            lookups,
            "            // SAFETY: the headers give `{function}` the type `{pointer}`."
        )?;
        writeln!(
            lookups,
            "            {function}: unsafe {{ symbol(library, c\"{function}\") }},"
        )?;
    }
    Ok(format!(
        "/// The functions that the headers declare. Each one is optional, because the library may be older than the headers.\n\
         #[derive(Clone, Copy, Debug, Default)]\n\
         pub struct Functions {{\n{fields}}}\n\n\
         impl Functions {{\n    \
             pub(crate) fn of(library: &libloading::Library) -> Self {{\n        \
                 Self {{\n{lookups}        }}\n    }}\n}}\n"
    ))
}

/// Generates assertions that the handwritten declarations agree with those headers that have them: constants are equal,
/// structures have the same layout, and functions have the same type.
fn extension_checks(declared: &str, bindings: &str) -> Result<String, Box<dyn Error>> {
    let mut checks = String::new();
    let known = |what: String| bindings.lines().any(|line| line.trim().starts_with(&what));
    let mut lines = declared.lines();
    while let Some(line) = lines.next() {
        if let Some((name, kind)) = declaration(line, "pub const ", ':')
            && known(format!("pub const {name}:"))
        {
            let value = if kind.starts_with(" u32") { "" } else { ".0" };
            writeln!(
                checks,
                "const _: () = assert!(extensions::{name}{value} == bindings::{name}.0);"
            )?;
        } else if let Some((name, _)) = declaration(line, "pub type ", ' ')
            && known(format!("pub type {name} ="))
        {
            writeln!(
                checks,
                "const _: fn(extensions::{name}) -> bindings::{name} = |function| function;"
            )?;
        } else if let Some((name, _)) = declaration(line, "pub struct ", ' ')
            && known(format!("pub struct _{name} {{"))
        {
            for measure in ["size_of", "align_of"] {
                writeln!(
                    checks,
                    "const _: () = assert!({measure}::<extensions::{name}>() == {measure}::<bindings::{name}>());"
                )?;
            }
            let fields = lines.by_ref().take_while(|line| *line != "}");
            for (field, _) in fields.filter_map(|line| declaration(line, "    pub ", ':')) {
                writeln!(
                    checks,
                    "const _: () = assert!(offset_of!(extensions::{name}, {field}) == offset_of!(bindings::{name}, {field}));"
                )?;
            }
        }
    }
    Ok(checks)
}

/// Splits a line that starts with `keyword` into the declared name, up to `end`, and the rest of the line.
fn declaration<'a>(line: &'a str, keyword: &str, end: char) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(keyword)?.split_once(end)
}

/// Generates the function that returns the name of a result code.
fn result_names(results: &[(String, i64)]) -> Result<String, Box<dyn Error>> {
    let mut arms = String::new();
    for (name, number) in results {
        writeln!(arms, "            {number} => Some(\"{name}\"),")?;
    }
    Ok(format!(
        "impl ze_result_t {{\n    \
             /// The specification's name of this result, or `None` for a code that the headers do not define.\n    \
             #[must_use]\n    \
             pub fn name(self) -> Option<&'static str> {{\n        \
                 match self.0 {{\n{arms}            _ => None,\n        }}\n    }}\n}}\n"
    ))
}
