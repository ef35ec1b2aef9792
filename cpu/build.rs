//! How the shared library is linked, and the code that is made of the list of its names.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{fs, io};

/// The tables in order: getter, index, function, and the version that added it; of a function that is implemented and that the oldest
/// supported headers do not declare, also the types of its parameters.
const TABLES: &str = "src/ddi/tables.csv";
/// The names that the loader exports.
const NAMES: &str = "src/ddi/loader-1.32.txt";
/// Where functions are declared that are implemented.
const SOURCES: [&str; 8] = [
    "src/ddi/control.rs",
    "src/ddi/extension.rs",
    LINUX,
    "src/ddi/loader.rs",
    "src/ddi/memory.rs",
    "src/ddi/module.rs",
    "src/ddi/submission.rs",
    "src/ddi/tables.rs",
];

/// That of functions which other systems lack.
const LINUX: &str = "src/ddi/linux.rs";

fn main() -> Result<(), Box<dyn Error>> {
    for changed in ["build.rs", TABLES, NAMES].iter().chain(&SOURCES) {
        println!("cargo:rerun-if-changed={changed}");
    }
    let is_linux = env::var("CARGO_CFG_TARGET_OS")? == "linux";
    if is_linux {
        link();
    }
    let (tables, names) = (fs::read_to_string(TABLES)?, fs::read_to_string(NAMES)?);
    let sources = SOURCES.iter().filter(|file| is_linux || **file != LINUX);
    let defined = defined(sources)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("tables.rs"), table_code(&tables, &defined)?)?;
    fs::write(out.join("declarations.rs"), declarations(&tables)?)?;
    fs::write(
        out.join("absent.rs"),
        absent_code(&tables, &names, &defined),
    )?;
    Ok(())
}

/// How the shared library is linked on Linux.
fn link() {
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

/// The functions of Level Zero that the sources define by the macro `functions!`.
fn defined<'a>(sources: impl Iterator<Item = &'a &'a str>) -> io::Result<BTreeSet<String>> {
    let mut defined = BTreeSet::new();
    for file in sources {
        defined.extend(fs::read_to_string(file)?.lines().filter_map(name_in));
    }
    Ok(defined)
}

/// The name that a line of the macro defines: `zeName => path;` or `zeName(`.
fn name_in(line: &str) -> Option<String> {
    let line = line.trim();
    let end = line.find(|it: char| !it.is_ascii_alphanumeric())?;
    let (name, rest) = line.split_at(end);
    let is_defined = name.starts_with("ze") && (rest.starts_with('(') || rest.starts_with(" =>"));
    is_defined.then(|| name.to_owned())
}

/// The tables, and which functions are implemented: of those, and of the runtime's own extensions.
fn table_code(tables: &str, defined: &BTreeSet<String>) -> Result<String, Box<dyn Error>> {
    let own = defined.iter().filter(|name| name.starts_with("zeusm"));
    let (mut code, mut implemented) = (String::from("tables! {"), String::new());
    own.for_each(|name| implemented += &format!(" {name}"));
    let mut last = "";
    for row in tables.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [getter, _, function, since, _] = fields[..] else {
            return Err(format!("{TABLES}: {row}").into());
        };
        if getter != last {
            let end = if last.is_empty() { "" } else { "}" };
            write!(code, "{end}\n{getter} {{")?;
            last = getter;
        }
        let minor = since.strip_prefix("1.").ok_or("a version begins with 1.")?;
        write!(code, " {minor} {function}")?;
        if defined.contains(function) {
            write!(implemented, " {function}")?;
        }
    }
    Ok(format!("{code}}}\n}}\nimplemented! {{{implemented} }}\n"))
}

/// The macro that passes on how a function is declared, as `level_zero_sys::declaration!` does for those of the headers.
fn declarations(tables: &str) -> Result<String, std::fmt::Error> {
    let mut code = String::from("macro_rules! declaration {\n");
    for row in tables.lines().skip(1) {
        let mut fields = row.split(',').skip(2);
        let (Some(name), Some(types)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        let types = types.split_terminator(';').enumerate();
        let list = types.map(|(index, kind)| {
            let open = if kind.starts_with('[') { "[" } else { "" };
            let close = if kind.ends_with(']') { "] " } else { ", " };
            let kind = kind.trim_matches(['[', ']']);
            format!("{open}argument{index}: {kind}{close}")
        });
        let list = list.collect::<String>();
        let list = list.trim_end_matches(", ");
        if !list.is_empty() {
            writeln!(
                code,
                "({name} [$($then:tt)*] $($rest:tt)*) => {{ $($then)*! {{ {name}({list}) $($rest)* }} }};"
            )?;
        }
    }
    code += "($($of_headers:tt)*) => { level_zero_sys::declaration! { $($of_headers)* } };\n}\n";
    Ok(code)
}

/// The names that are exported and not defined.
fn absent_code(tables: &str, names: &str, defined: &BTreeSet<String>) -> String {
    let is_table = |name: &str| tables.contains(&format!("\n{name},"));
    let missing = names
        .lines()
        .filter(|name| !defined.contains(*name) && !is_table(name));
    let (getters, functions): (Vec<_>, Vec<_>) =
        missing.partition(|name| name.ends_with("ProcAddrTable"));
    [("empty", getters), ("absent", functions)]
        .iter()
        .map(|(kind, names)| format!("{kind}! {{ {} }}\n", names.join(" ")))
        .collect()
}
