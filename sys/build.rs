//! Generates the bindings from the installed Level Zero headers.
//!
//! One bindgen pass over `ze_api.h`, `ze_ddi.h` and a part of the system management API (`zes_`) generates the types. More files
//! are derived from its output, so newer headers extend them without a change here: the table of functions to look up at run time
//! and their declarations, the types of structures, the names of the result codes, and compile-time checks of the declarations in
//! `src/extensions.rs`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Environment variable with the folder that holds `level_zero/ze_api.h` (or `ze_api.h` itself).
const INCLUDE_VARIABLE: &str = "LEVEL_ZERO_INCLUDE_DIR";

/// The part of the system management API that is generated: the memory of a device.
const SYSMAN: &str = "zes_pfn(DeviceGetProperties|DeviceEnumMemoryModules|MemoryGetProperties|MemoryGetState)_t\
    |zes_pfn(Init|DriverGet|DeviceGet)_t|ZES_STRUCTURE_TYPE_.*|ZES_MEM_.*\
    |zes_driver_handle_t|zes_(memory|device)_dditable_t";

/// The handwritten declarations.
const EXTENSIONS: &str = "src/extensions.rs";

/// The bindings in the published crate (`make package`), for builds without headers: documentation services have none.
const PACKAGED: &str = "generated/bindings.rs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={EXTENSIONS}");
    println!("cargo:rerun-if-env-changed={INCLUDE_VARIABLE}");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let bindings = if env::var_os("DOCS_RS").is_some() && Path::new(PACKAGED).exists() {
        fs::read_to_string(PACKAGED)?
    } else {
        generate(&find_headers()?)?
    };
    fs::write(out.join("bindings.rs"), &bindings)?;
    let extensions = fs::read_to_string(EXTENSIONS)?;
    fs::write(
        out.join("functions.rs"),
        function_table(&bindings, &extensions)?,
    )?;
    fs::write(out.join("declarations.rs"), declarations(&bindings)?)?;
    fs::write(out.join("structures.rs"), structure_types(&bindings)?)?;
    let checks = extension_checks(&extensions, &bindings)?;
    fs::write(out.join("extension_checks.rs"), checks)?;
    let names = result_names(&(bindings + &extensions))?;
    fs::write(out.join("results.rs"), names)?;
    Ok(())
}

/// Generates the types and constants of the headers in this folder.
fn generate(headers: &Path) -> Result<String, bindgen::BindgenError> {
    let bindings = bindgen::Builder::default()
        .header_contents(
            "level_zero_sys.h",
            "#include <ze_api.h>\n#include <ze_ddi.h>\n#include <zes_api.h>\n#include <zes_ddi.h>\n",
        )
        .clang_arg(format!("-I{}", headers.display()))
        .allowlist_item("_?[zZ][eE]_.*")
        .allowlist_item(SYSMAN)
        .default_enum_style(bindgen::EnumVariation::NewType {
            is_bitfield: false,
            is_global: true,
        })
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(true)
        // No extern blocks: the crate links no Level Zero library, so a direct call would fail at link time.
        .with_codegen_config(bindgen::CodegenConfig::TYPES | bindgen::CodegenConfig::VARS)
        // The text is searched below, so its form must not depend on an installed rustfmt, which small installations lack.
        .formatter(bindgen::Formatter::Prettyplease)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()?;
    Ok(bindings.to_string())
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

/// Generates a struct with an optional pointer for each function in the headers or in `src/extensions.rs`, and its constructor.
fn function_table(bindings: &str, extensions: &str) -> Result<String, Box<dyn Error>> {
    let mut fields = BTreeMap::new();
    // ze_ddi.h names the type of zeMemFree ze_pfnMemFree_t. The tracing callbacks of ze_api.h (..Cb_t) and the functions that
    // drivers export for the loader (ze_pfnGet*ProcAddrTable_t) are not part of the API for callers.
    for (module, declared) in [
        ("crate::extensions", extensions),
        ("crate::bindings", bindings),
    ] {
        let types = declared.lines().map(str::trim);
        let names = types.filter_map(|line| {
            let (api, name) = line.strip_prefix("pub type ")?.split_once("_pfn")?;
            Some((api, name.split_once("_t =")?.0))
        });
        let called = names.filter(|(api, name)| match *api {
            "ze" => !name.ends_with("Cb") && !name.ends_with("ProcAddrTable"),
            api => api == "zes",
        });
        fields.extend(called.map(|(api, name)| {
            (
                format!("{api}{name}"),
                format!("{module}::{api}_pfn{name}_t"),
            )
        }));
    }
    let mut lookups = String::new();
    let mut declarations = String::new();
    for (function, pointer) in fields {
        writeln!(
            declarations,
            "    /// `{function}`; `None` if the library lacks it.\n    pub {function}: {pointer},"
        )?;
        writeln!(
            lookups,
            "            // SAFETY: the headers give `{function}` the type `{pointer}`.\n            \
             {function}: unsafe {{ symbol(library, c\"{function}\") }},"
        )?;
    }
    Ok(format!(
        "/// The functions that are declared. Each one is optional, because the library may be older than the declarations.\n\
         #[derive(Clone, Copy, Debug, Default)]\n\
         pub struct Functions {{\n{declarations}}}\n\n\
         impl Functions {{\n    \
             pub(crate) fn of(library: &libloading::Library) -> Self {{\n        \
                 Self {{\n{lookups}        }}\n    }}\n}}\n"
    ))
}

/// Generates the macro that passes on how a function of the headers is declared.
fn declarations(bindings: &str) -> Result<String, Box<dyn Error>> {
    /// The parameters of an append that say what it signals and waits for.
    const EVENTS: [&str; 3] = ["ze_event_handle_t", "u32", "*mut ze_event_handle_t"];
    let mut arms = String::new();
    for declared in bindings.split("\npub type ").skip(1) {
        let Some(((api, name), declared)) = declared
            .split_once("_t = ::std::option::Option<")
            .and_then(|(name, declared)| Some((name.split_once("_pfn")?, declared)))
        else {
            continue;
        };
        let parameters = declared
            .split_once("fn(")
            .and_then(|(_, it)| it.split_once(')'));
        let (parameters, rest) = parameters.ok_or("bindgen declares functions differently")?;
        if !["ze", "zes"].contains(&api) || !rest.starts_with(" -> ze_result_t") {
            continue;
        }
        let types = parameters.split(',').filter_map(|it| it.split_once(": "));
        let types: Vec<&str> = types.map(|(_, kind)| kind.trim()).collect();
        let events = types.len() - if types.ends_with(&EVENTS) { 3 } else { 0 };
        let list = types.iter().enumerate().map(|(index, kind)| {
            let (pointer, name) = kind.rsplit_once(' ').unwrap_or(("", kind));
            let path = if name.starts_with("ze") {
                "$crate::"
            } else {
                ""
            };
            let next = types
                .get(index + 1)
                .is_some_and(|next| is_place(kind, next));
            let (open, close) = match index {
                _ if index == events => ("[", ", "),
                _ if index == events + 1 => ("", "] "),
                _ if next => ("[", "] "),
                _ => ("", ", "),
            };
            format!("{open}argument{index}: {pointer} {path}{name}{close}")
        });
        let list = list.collect::<String>();
        let list = list.trim_end_matches(", ");
        writeln!(
            arms,
            "    ({api}{name} [$($then:tt)*] $($rest:tt)*) => {{ $($then)*! {{ {api}{name}({list}) $($rest)* }} }};"
        )?;
    }
    Ok(format!(
        "/// Passes a function of the headers to the macro in brackets, with its parameters, and what follows: `zeName [macro] rest`\n\
         /// becomes `macro! {{ zeName(argument0: type, ...) rest }}`. Brackets hold what belongs to the next parameter: the length of an\n\
         /// array, and two of the three parameters at the end of an append.\n\
         #[macro_export]\n\
         macro_rules! declaration {{\n{arms}}}\n"
    ))
}

/// Whether a parameter of type `length` is the length of an array of the next type.
fn is_place(length: &str, next: &str) -> bool {
    match length {
        "u32" => next.starts_with("*mut ze"),
        "*mut u32" => next.starts_with("*mut ze") || next.starts_with("*mut *const"),
        "*mut usize" => ["*mut u8", "*mut ::std::os::raw::c_char"].contains(&next),
        _ => false,
    }
}

/// Generates which `stype` names which structure: the headers say it in the comment of the constant.
fn structure_types(declarations: &str) -> Result<String, std::fmt::Error> {
    let mut named = BTreeMap::<&str, Vec<&str>>::new();
    let mut structure = None;
    for line in declarations.lines().map(str::trim) {
        // A comment may go on behind the name, in further lines, too.
        let comment = line
            .strip_prefix("///< ::")
            .or(line.strip_prefix("/**< ::"));
        if let Some(comment) = comment {
            structure = comment.split(['.', ' ']).next();
        } else if let Some((name, _)) = declaration(line, "pub const ZE", ':')
            && name.contains("STRUCTURE_TYPE_")
            && let Some(structure) = structure.take()
        {
            named.entry(structure).or_default().push(name);
        }
    }
    let is_declared = |name: &str| declarations.contains(&format!("pub struct _{name} {{"));
    named.retain(|structure, _| is_declared(structure));
    let mut code = String::new();
    for (structure, constants) in named {
        let types = constants
            .iter()
            .map(|name| format!("ze_structure_type_t(bindings::ZE{name}.0)"));
        let types = types.collect::<Vec<_>>().join(", ");
        writeln!(
            code,
            "// SAFETY: the headers begin the structure with stype and pNext.\n\
             unsafe impl Structure for bindings::{structure} {{ const TYPES: &'static [ze_structure_type_t] = &[{types}]; }}"
        )?;
    }
    Ok(code)
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
        } else if let Some(rest) = line.trim_start().strip_prefix("pub struct ")
            && let Some((name, rest)) = rest.split_once([':', ' '])
            && known(format!("pub struct _{name} {{"))
        {
            // In `structures!`, the constant of its type follows.
            if let Some((constant, _)) = rest.trim_start().split_once(" = ") {
                writeln!(
                    checks,
                    "const _: () = assert!(extensions::{constant}.0 == bindings::{constant}.0);"
                )?;
            }
            for measure in ["size_of", "align_of"] {
                writeln!(
                    checks,
                    "const _: () = assert!({measure}::<extensions::{name}>() == {measure}::<bindings::{name}>());"
                )?;
            }
            let fields = lines.by_ref().map(str::trim_start);
            let fields = fields.take_while(|line| *line != "}");
            for field in fields.filter(|line| !line.starts_with("///")) {
                let (field, _) = field.split_once(':').unwrap_or_default();
                let field = field.trim_start_matches("pub ");
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
fn result_names(declarations: &str) -> Result<String, std::fmt::Error> {
    let mut arms = String::new();
    let constants = declarations.split("pub const ZE_RESULT_").skip(1);
    // FORCE_UINT32 only widens the C enum; no call returns it.
    for (name, _) in constants
        .filter_map(|it| it.split_once(':'))
        .filter(|it| it.0 != "FORCE_UINT32")
    {
        writeln!(
            arms,
            "            ZE_RESULT_{name} => Some(\"ZE_RESULT_{name}\"),"
        )?;
    }
    Ok(format!(
        "impl ze_result_t {{\n    \
             /// The specification's name of this result, or `None` for a code that the headers do not define.\n    \
             #[must_use]\n    \
             // Two names may have one number.\n    \
             #[allow(unreachable_patterns)]\n    \
             pub fn name(self) -> Option<&'static str> {{\n        \
                 use crate::extensions::*;\n        \
                 match self {{\n{arms}            _ => None,\n        }}\n    }}\n}}\n"
    ))
}
