//! Built modules on disk, which a later process loads without a compiler.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, thread};

use rustix::process::{Pid, Signal, kill_process};

use super::compiler::{TOKEN, compilers};
use super::process::{alone_with, run};
use super::programs::{CONSTANT, module};
use super::runtime::{Runtime, call, description, must};

const FOLDER: &str = "ZEUSM_CACHE_DIR";
const SIZE: &str = "ZEUSM_CACHE_SIZE";
/// Begins the line with the number of processes that build modules.
const BUILDERS: &str = "builders: ";

/// A new path for a cache.
fn path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

/// The modules in a cache.
fn files(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether a new process had to build its module; `None` where none can.
fn builds(cache: &Path, variables: &[(&str, &str)]) -> Option<bool> {
    let token = format!("{}-{:?}", std::process::id(), thread::current().id());
    let defaults = [
        (TOKEN, &*token),
        (FOLDER, cache.to_str().unwrap()),
        (SIZE, ""),
    ];
    let output = alone_with(
        "cache::builds_a_module",
        &[&defaults[..], variables].concat(),
    );
    let line = output.lines().find_map(|line| line.strip_prefix(BUILDERS));
    line.map(|count| count != "0")
}

#[test]
#[ignore = "run by the other tests of this file"]
fn builds_a_module() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "increase").unwrap();
    let memory = runtime.shared(&[1; 4]);
    must!(runtime, zeKernelSetGroupSize(kernel, 4, 1, 1));
    runtime.set(kernel, 0, memory.as_ptr());
    runtime.set(kernel, 1, 10_u32);
    runtime.set(kernel, 2, [0_u32, 100]);
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 1, std::ptr::null_mut(), &[]);
    runtime.synchronize(list);
    assert_eq!(memory, [111; 4]);
    println!("\n{BUILDERS}{}", compilers().len());
}

#[test]
fn a_second_process_needs_no_compiler() {
    let path = path("second");
    let Some(is_built) = builds(&path, &[]) else {
        return;
    };
    assert!(is_built);
    assert_eq!(files(&path).len(), 1);
    assert_eq!(builds(&path, &[]), Some(false));
    // Variables of the compiler, and its limit of time, decide what it makes.
    for variable in [
        ("CL_CONFIG_CPU_VECTORIZER_MODE", "1"),
        ("ZEUSM_COMPILER_SECONDS", "77"),
    ] {
        assert_eq!(builds(&path, &[variable]), Some(true), "{variable:?}");
        assert_eq!(builds(&path, &[variable]), Some(false), "{variable:?}");
    }
    assert_eq!(files(&path).len(), 3);
    assert_eq!(builds(&path, &[(SIZE, "0")]), Some(true));
}

#[test]
fn options_are_a_part_of_the_key() {
    let path = path("options");
    let environment = [(FOLDER, path.to_str().unwrap()), (SIZE, "")];
    alone_with("cache::builds_with_options", &environment);
}

#[test]
#[ignore = "run by the test before, with a cache of its own"]
fn builds_with_options() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
    let code = module();
    let mut known = files(&folder).len();
    for (flags, constants, is_new) in [
        (c"", &[][..], false),
        (c"-cl-opt-disable", &[], true),
        (c"-cl-opt-disable", &[], false),
        (c"", &[(CONSTANT, 5)], true),
        (c"", &[(CONSTANT, 6)], true),
        (c"", &[(CONSTANT, 5)], false),
    ] {
        let built = if constants.is_empty() {
            runtime.build_described(&level_zero_sys::ze_module_desc_t {
                pBuildFlags: flags.as_ptr(),
                ..description(&code)
            })
        } else {
            runtime.build(&code, constants)
        };
        must!(runtime, zeModuleDestroy(built.unwrap()));
        known += usize::from(is_new);
        assert_eq!(files(&folder).len(), known, "{flags:?} {constants:?}");
    }
    // What the compiler refuses is refused again.
    for _ in 0..2 {
        assert!(runtime.build(&code[..code.len() - 8], &[]).is_err());
    }
    assert_eq!(files(&folder).len(), known);
}

#[test]
fn a_damaged_file_and_code_that_opencl_refuses_are_replaced() {
    /// The magic number of `module::sealed`, before the checksum.
    const MAGIC: usize = 16;
    let path = path("damaged");
    if builds(&path, &[]).is_none() {
        return;
    }
    let file = &files(&path)[0];
    let whole = fs::read(file).unwrap();
    fs::write(file, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(builds(&path, &[]), Some(true));
    assert_eq!(builds(&path, &[]), Some(false));
    // The code, of which nothing is left, is behind the key.
    let elf = whole.windows(4).position(|bytes| bytes == b"\x7fELF");
    let mut refused = whole[..elf.unwrap()].to_vec();
    let checksum = crc32fast::hash(&refused[MAGIC + 4..]).to_le_bytes();
    refused[MAGIC..MAGIC + 4].copy_from_slice(&checksum);
    fs::write(file, &refused).unwrap();
    assert_eq!(builds(&path, &[]), Some(true));
    assert_eq!(builds(&path, &[]), Some(false));
}

#[test]
fn processes_build_and_keep_one_module_at_once() {
    let path = path("at-once");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| builds(&path, &[]));
        }
    });
    if builds(&path, &[]).is_some_and(|is_built| !is_built) {
        assert_eq!(files(&path).len(), 1);
    }
}

#[test]
fn a_cache_that_is_full_loses_what_was_not_used_for_the_longest() {
    let path = path("full");
    fs::create_dir(&path).unwrap();
    let old = |name: &str, hours: u64| {
        let (file, then) = (path.join(name), Duration::from_secs(3600 * hours));
        fs::write(&file, vec![0; 600 << 10]).unwrap();
        let open = File::options().append(true).open(&file).unwrap();
        open.set_modified(SystemTime::now() - then).unwrap();
        file
    };
    let names = ["0000000000000001.zeusm", "0000000000000002.zeusm"];
    let (newer, older) = (old(names[0], 1), old(names[1], 2));
    let others = old("somebody's", 3);
    if builds(&path, &[(SIZE, "1")]).is_none() {
        return;
    }
    assert!(newer.exists() && !older.exists() && others.exists());
    assert_eq!(builds(&path, &[(SIZE, "1")]), Some(false));
}

#[test]
fn modules_are_built_without_a_folder_for_them() {
    let own = env::current_exe().unwrap();
    for cache in [Path::new("/proc/zeusm"), &own] {
        assert!(builds(cache, &[]).unwrap_or(true));
    }
    let nowhere = [(FOLDER, ""), ("HOME", "/nowhere"), ("XDG_CACHE_HOME", "")];
    assert!(builds(Path::new("/"), &nowhere).unwrap_or(true));
}

#[test]
fn a_build_that_takes_ten_seconds_is_announced() {
    let environment = [(TOKEN, "announced"), (SIZE, "0")];
    let output = run("cache::waits_for_a_build", &environment);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    if !told.contains("skipped") {
        let line = "the build of a module (kernels: 7, first: add) takes more than 10 seconds";
        assert_eq!(told.matches(line).count(), 1, "{told}");
    }
}

#[test]
#[ignore = "run by the test before"]
fn waits_for_a_build() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let all = compilers().into_iter();
    let compiler = all.last().and_then(Pid::from_raw).unwrap();
    kill_process(compiler, Signal::STOP).unwrap();
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_secs(12));
        kill_process(compiler, Signal::CONT).unwrap();
    });
    must!(
        runtime,
        zeModuleDestroy(runtime.build(&module(), &[]).unwrap())
    );
    waker.join().unwrap();
}
