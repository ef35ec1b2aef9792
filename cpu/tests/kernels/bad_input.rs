//! Invalid input, and the specification's result codes.

use std::path::Path;
use std::process::Command;
use std::{env, fs, ptr};

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use proptest::prelude::*;

use super::programs::module;
use super::runtime::{Runtime, call, description, must};

#[test]
fn invalid_modules_are_refused_with_a_log() {
    let runtime = Runtime::open();
    let failure = sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
    let whole = module();
    for (bytes, word) in [
        (
            &b"a text of no meaning at all, and long enough"[..],
            "magic",
        ),
        (&whole[..3], "header"),
        (&whole[..whole.len() - 8], "function"),
    ] {
        let (code, log) = runtime.build(bytes, &[]).unwrap_err();
        assert_eq!(code, failure);
        assert!(log.contains(word), "{log:?} lacks {word:?}");
    }
    let refused = |desc: &sys::ze_module_desc_t| runtime.build_described(desc).unwrap_err().0;
    assert_eq!(
        refused(&sys::ze_module_desc_t {
            inputSize: 0,
            ..description(&whole)
        }),
        sys::ZE_RESULT_ERROR_INVALID_SIZE
    );
    assert_eq!(
        refused(&sys::ze_module_desc_t {
            pInputModule: ptr::null(),
            ..description(&whole)
        }),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    let format = sys::ze_module_format_t(77);
    assert_eq!(
        refused(&sys::ze_module_desc_t {
            format,
            ..description(&whole)
        }),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    let format = sys::ZE_MODULE_FORMAT_NATIVE;
    assert_eq!(
        refused(&sys::ze_module_desc_t {
            format,
            ..description(&whole)
        }),
        sys::ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
    );
}

#[test]
fn a_module_cut_anywhere_is_refused() {
    let runtime = Runtime::open();
    let whole = module();
    for end in (1..whole.len()).step_by(3) {
        let (code, log) = runtime.build(&whole[..end], &[]).unwrap_err();
        assert_eq!(
            code,
            sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE,
            "{end} bytes"
        );
        assert!(!log.is_empty());
    }
}

/// Runs the test `name` again in a process of its own with another environment; `true` in that process, which then does
/// the work.
fn alone(name: &str, variables: &[(&str, &str)]) -> bool {
    const ALONE: &str = "ZEUSM_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let name = format!("bad_input::{name}");
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args(["--exact", &name])
        .env(ALONE, "1")
        .envs(variables.iter().copied());
    assert!(process.status().unwrap().success());
    false
}

/// One byte is changed: the module is built, or refused with a log; this process survives in both cases.
#[test]
fn a_module_with_a_changed_byte_never_crashes() {
    // Some changes make the compiler hang.
    let impatient = [("ZEUSM_COMPILER_SECONDS", "5")];
    if !alone("a_module_with_a_changed_byte_never_crashes", &impatient) {
        return;
    }
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let whole = module();
    let build = |at: usize, bits: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= bits;
        match runtime.build(&bytes, &[]) {
            Ok(module) => must!(runtime, zeModuleDestroy(module)),
            Err((code, log)) => {
                assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
                assert!(!log.is_empty());
            }
        }
    };
    if env::var_os("PROPTEST_CASES").is_some() {
        let config = ProptestConfig {
            max_shrink_iters: 0,
            ..ProptestConfig::default()
        };
        proptest!(config, |(at in 0..whole.len(), bits in 1_u8..=255)| build(at, bits));
    } else {
        // `make test-fuzz` changes any byte; here these: of the header, of a declaration, of the code.
        for at in [7, whole.len() / 3, whole.len() - 21] {
            build(at, 0x11);
        }
    }
    // The compiler works again for the next module.
    must!(
        runtime,
        zeModuleDestroy(runtime.build(&whole, &[]).unwrap())
    );
}

#[test]
fn kernels_and_arguments_are_checked() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    assert_eq!(
        runtime.kernel(module, "nothing").unwrap_err(),
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_NAME
    );
    assert!(runtime.last_error().contains("nothing"));
    let kernel = runtime.kernel(module, "increase").unwrap();
    let (index, size) = (
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX,
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE,
    );
    assert_eq!(runtime.set(kernel, 3, 0_u64), index);
    assert_eq!(runtime.set(kernel, u32::MAX, 0_u64), index);
    assert_eq!(runtime.set(kernel, 0, 0_u32), size, "a pointer has 8 bytes");
    assert_eq!(
        runtime.set(kernel, 1, [0_u64; 2]),
        size,
        "the number has 4 bytes"
    );
    assert_eq!(
        runtime.set(kernel, 2, 0_u32),
        size,
        "the structure has 8 bytes"
    );
    assert_eq!(runtime.set(kernel, 1, [0_u8; 0]), size);

    let list = runtime.immediate(true);
    let launch = |kernel| runtime.append_launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(
        launch(kernel),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        "no argument has been set"
    );
    assert!(
        runtime.last_error().contains("argument 0"),
        "{}",
        runtime.last_error()
    );
    assert_eq!(
        launch(ptr::null_mut()),
        sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    );
    assert_eq!(
        call!(
            runtime,
            zeCommandListAppendLaunchKernel(
                list,
                kernel,
                ptr::null(),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        ),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );

    assert_eq!(
        call!(runtime, zeModuleDestroy(module)),
        sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE
    );
    assert!(runtime.last_error().contains("kernels"));
    must!(runtime, zeKernelDestroy(kernel));
    assert_eq!(
        launch(kernel),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        "the kernel is gone"
    );
    must!(runtime, zeModuleDestroy(module));
    assert_eq!(
        runtime.kernel(module, "add").unwrap_err(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT
    );
}

#[test]
fn group_sizes_are_checked() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let (any, eights) = (
        runtime.kernel(module, "add").unwrap(),
        runtime.kernel(module, "eights").unwrap(),
    );
    let set = |kernel, x, y, z| call!(runtime, zeKernelSetGroupSize(kernel, x, y, z));
    let invalid = sys::ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    let mut compute = sys::ze_device_compute_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetComputeProperties(runtime.device, &raw mut compute)
    );
    for (x, y, z) in [
        (0, 1, 1),
        (1, 0, 1),
        (1, 1, 0),
        (compute.maxGroupSizeX + 1, 1, 1),
        (u32::MAX, u32::MAX, u32::MAX),
    ] {
        assert_eq!(set(any, x, y, z), invalid, "{x} {y} {z}");
    }
    assert_eq!(set(any, compute.maxTotalGroupSize, 2, 1), invalid);
    assert_eq!(set(any, 16, 2, 1), OK);
    assert_eq!(set(eights, 16, 1, 1), invalid);
    assert_eq!(set(eights, 8, 1, 1), OK);
    let suggest = |kernel, items: [u32; 3]| {
        let (mut x, mut y, mut z) = (0, 0, 0);
        let [width, height, depth] = items;
        let code = call!(
            runtime,
            zeKernelSuggestGroupSize(
                kernel, width, height, depth, &raw mut x, &raw mut y, &raw mut z
            )
        );
        (code, [x, y, z])
    };
    assert_eq!(suggest(eights, [64, 1, 1]), (OK, [8, 1, 1]));
    // SYCL asks for empty ranges, too, and launches no groups then.
    for items in [[0, 1, 1], [1, 0, 1], [8, 8, 0], [0, 0, 0]] {
        let (code, group) = suggest(any, items);
        assert_eq!(code, OK, "{items:?}");
        assert!(group.iter().all(|&size| size != 0), "{group:?}");
    }
    for items in [
        [1, 1, 1],
        [1000, 1, 1],
        [9973, 1, 1],
        [10_000_000, 1, 1],
        [30, 50, 7],
        [u32::MAX, 1, 1],
    ] {
        let (code, group) = suggest(any, items);
        assert_eq!(code, OK);
        assert!(
            items
                .iter()
                .zip(group)
                .all(|(items, size)| items % size == 0),
            "{group:?} for {items:?}"
        );
        assert_eq!(set(any, group[0], group[1], group[2]), OK);
    }
}

#[test]
fn a_wrong_choice_of_the_opencl_runtime_is_in_the_log() {
    let nowhere = [("ZEUSM_OPENCL_LIBRARY", "/nowhere/libintelocl.so")];
    if alone(
        "a_wrong_choice_of_the_opencl_runtime_is_in_the_log",
        &nowhere,
    ) {
        let (code, log) = Runtime::open().build(&module(), &[]).unwrap_err();
        assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
        assert!(
            log.contains("ZEUSM_OPENCL_LIBRARY names no OpenCL runtime"),
            "{log}"
        );
        assert!(
            log.contains("/nowhere/libintelocl.so: cannot open shared object file"),
            "{log}"
        );
    }
}

/// The variable of the process whose library is removed.
const REMOVED: &str = "ZEUSM_TEST_REMOVED";

#[test]
fn a_removed_library_is_named_in_the_log() {
    if let Some(library) = env::var_os(REMOVED) {
        let runtime = Runtime::open();
        fs::remove_file(&library).unwrap();
        let (code, log) = runtime.build(&module(), &[]).unwrap_err();
        assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
        let without_opencl = log.contains("no OpenCL runtime");
        let names_it = log.contains(library.to_str().unwrap()) && log.contains("restart");
        assert!(names_it || without_opencl, "{log}");
        return;
    }
    // A link to this program, with one to the library beside it. A copy would be open for writing in the children of other
    // tests' forks, and could not be executed meanwhile.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("removed");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let own = env::current_exe().unwrap();
    let link_to = |file: &Path| {
        let link = folder.join(file.file_name().unwrap());
        fs::hard_link(file, &link).unwrap();
        link
    };
    let library = link_to(&own.with_file_name("libzeusm_cpu.so"));
    let status = Command::new(link_to(&own))
        .args([
            "--exact",
            "bad_input::a_removed_library_is_named_in_the_log",
        ])
        .env(REMOVED, &library)
        .env("ZE_ENABLE_ALT_DRIVERS", &library)
        .status();
    fs::remove_dir_all(&folder).unwrap();
    assert!(status.unwrap().success());
}
