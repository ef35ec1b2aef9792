//! The function tables: every function by name, and no entries beyond the caller's version.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};

use common::{OK, direct};
use level_zero_sys as sys;

type Getter = unsafe extern "C" fn(sys::ze_api_version_t, *mut *const c_void) -> sys::ze_result_t;

const CANARY: usize = 0xDEAD_BEEF_0BAD_F00D;

/// Getter, then its entries in order: the function and the minor version that added it.
fn tables() -> BTreeMap<&'static str, Vec<(&'static str, u32)>> {
    let mut tables: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in include_str!("../src/ddi/tables.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let since = fields[3].strip_prefix("1.").unwrap().parse().unwrap();
        let entries = tables.entry(fields[0]).or_default();
        assert_eq!(entries.len(), fields[1].parse::<usize>().unwrap());
        entries.push((fields[2], since));
    }
    tables
}

/// This library itself, also when a loader is in front of it.
fn library() -> &'static sys::Library {
    unsafe { sys::load_from(common::library_path()) }.unwrap()
}

fn symbol<F: Copy>(name: &str) -> F {
    unsafe { library().symbol(&CString::new(name).unwrap()) }.unwrap()
}

#[test]
fn tables_end_where_the_callers_version_ends() {
    for (getter, entries) in tables() {
        let fill: Getter = symbol(getter);
        for minor in 0..20 {
            let mut table = [CANARY as *const c_void; 128];
            let version = sys::ze_api_version_t(1 << 16 | minor);
            assert_eq!(unsafe { fill(version, table.as_mut_ptr()) }, OK, "{getter}");
            for (index, word) in table.into_iter().enumerate() {
                match entries.get(index) {
                    Some((name, since)) if *since <= minor => {
                        let exported: *const c_void = symbol(name);
                        assert_eq!(word, exported, "{getter} 1.{minor}: {name}");
                    }
                    _ => assert_eq!(word as usize, CANARY, "{getter} 1.{minor}: entry {index}"),
                }
            }
        }
    }
}

#[test]
fn getters_refuse_null_and_other_major_versions() {
    let current = sys::ze_api_version_t(1 << 16 | 4);
    for getter in tables().keys() {
        let fill: Getter = symbol(getter);
        let mut table = [CANARY as *const c_void; 128];
        for version in [0, 4, 2 << 16, u32::MAX] {
            let result = unsafe { fill(sys::ze_api_version_t(version), table.as_mut_ptr()) };
            assert_eq!(result, sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION, "{getter}");
        }
        assert!(table.iter().all(|word| *word as usize == CANARY));
        let result = unsafe { fill(current, std::ptr::null_mut()) };
        assert_eq!(
            result,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
            "{getter}"
        );
    }
}

#[test]
fn unimplemented_functions_return_unsupported() {
    type Any = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> sys::ze_result_t;
    let init: unsafe extern "C" fn(u32) -> sys::ze_result_t = symbol("zeInit");
    assert_eq!(unsafe { init(0) }, OK);
    for name in [
        "zeImageGetDeviceOffsetExp",
        "zeMemGetPitchFor2dImage",
        "zeRTASBuilderCreateExt",
        "zeDeviceGetRuntimeRequirementsKey",
    ] {
        let function: Any = symbol(name);
        let result = unsafe { function(0, 0, 0, 0, 0, 0) };
        assert_eq!(result, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "{name}");
    }
}

#[test]
fn a_loader_is_found_here() {
    type Versions = unsafe extern "C" fn(*mut usize, *mut [u8; 80]) -> sys::ze_result_t;
    for name in ["zelLoaderGetVersions", "zelLoaderGetVersionsInternal"] {
        let versions: Versions = symbol(name);
        let mut count = 0;
        assert_eq!(
            unsafe { versions(&raw mut count, std::ptr::null_mut()) },
            OK
        );
        assert_eq!(count, 1);
        let mut component = [0; 80];
        assert_eq!(unsafe { versions(&raw mut count, &raw mut component) }, OK);
        assert!(component.starts_with(b"loader\0"));
        // Major 1, and a minor of at least 18, from which on static loaders use zeInitDrivers.
        assert_eq!(component[68..72], 1_u32.to_ne_bytes());
        assert!(u32::from_ne_bytes(component[72..76].try_into().unwrap()) >= 18);
    }
    type Teardown = unsafe extern "C" fn(
        Option<extern "C" fn()>,
        *mut Option<extern "C" fn(u32)>,
        *mut u32,
    ) -> sys::ze_result_t;
    extern "C" fn ended() {}
    let register: Teardown = symbol("zelRegisterTeardownCallback");
    let (mut unregister, mut index) = (None, u32::MAX);
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    let place = &raw mut unregister;
    assert_eq!(unsafe { register(None, place, &raw mut index) }, null);
    assert_eq!(
        unsafe { register(Some(ended), std::ptr::null_mut(), &raw mut index) },
        null
    );
    assert_eq!(unsafe { register(Some(ended), place, &raw mut index) }, OK);
    unregister.unwrap()(index);
    let init: unsafe extern "C" fn() -> sys::ze_result_t = symbol("zeLoaderInit");
    assert_eq!(unsafe { init() }, OK);
    let tracing: unsafe extern "C" fn() -> *mut c_void = symbol("zeLoaderGetTracingHandle");
    assert!(unsafe { tracing() }.is_null());
    type Translate = unsafe extern "C" fn(u32, *mut c_void, *mut *mut c_void) -> sys::ze_result_t;
    for name in [
        "zelLoaderTranslateHandle",
        "zelLoaderTranslateHandleInternal",
    ] {
        let translate: Translate = symbol(name);
        let (from, mut to) = (0x1234 as *mut c_void, std::ptr::null_mut());
        assert_eq!(unsafe { translate(0, from, &raw mut to) }, OK);
        assert_eq!(from, to);
    }
}

#[test]
fn tables_of_tools_and_system_stay_as_they_are() {
    for getter in [
        "zetGetDeviceProcAddrTable",
        "zesGetPowerProcAddrTable",
        "zerGetGlobalProcAddrTable",
    ] {
        let fill: Getter = symbol(getter);
        let mut table = [CANARY as *const c_void; 128];
        assert_eq!(
            unsafe { fill(sys::ze_api_version_t(1 << 16 | 17), table.as_mut_ptr()) },
            OK
        );
        assert!(table.iter().all(|word| *word as usize == CANARY));
    }
}

#[test]
fn extension_functions_are_the_implemented_ones() {
    if !direct() {
        return; // A loader answers for functions of its own.
    }
    let driver = common::driver();
    let mut address = std::ptr::null_mut();
    ok!(zeDriverGetExtensionFunctionAddress(
        driver,
        c"zeMemFreeExt".as_ptr(),
        &raw mut address,
    ));
    assert_eq!(
        address.cast_const(),
        symbol::<*const c_void>("zeMemFreeExt")
    );
    for name in [c"zeMemGetPitchFor2dImage", c"zexNoSuchThing", c""] {
        let result = ze!(zeDriverGetExtensionFunctionAddress(
            driver,
            name.as_ptr(),
            &raw mut address
        ));
        assert_eq!(result, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        assert!(address.is_null());
    }
}

#[test]
#[cfg_attr(windows, ignore = "a DLL calls its own functions always")]
fn internal_calls_cannot_be_interposed() {
    let output = std::process::Command::new("readelf")
        .args(["--relocs", "--dynamic", "--wide"])
        .arg(common::library_path())
        .output();
    let text = String::from_utf8(output.expect("readelf of binutils").stdout).unwrap();
    assert!(text.contains("libze_loader.so.1"), "the SONAME");
    assert!(
        text.contains("SYMBOLIC") && text.contains("NODELETE"),
        "the flags"
    );
    let foreign = text.lines().filter(|line| {
        line.contains("R_") && line.split_whitespace().any(|word| word.starts_with("ze"))
    });
    assert_eq!(foreign.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn all_that_the_loader_exports_is_exported() {
    let library = library();
    let is_missing = |name: &&str| {
        let name = CString::new(*name).unwrap();
        unsafe { library.symbol::<*const c_void>(&name) }.is_err()
    };
    let names = include_str!("../src/ddi/loader-1.32.txt").lines();
    assert_eq!(
        names.filter(is_missing).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn tools_and_system_return_the_errors_of_a_loader() {
    if !direct() {
        return; // A loader answers for itself.
    }
    type Any = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> sys::ze_result_t;
    common::library();
    for (name, expected) in [
        (
            "zesPowerGetLimits",
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
        ("zesDeviceReset", sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
        (
            "zetMetricGroupGet",
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
        (
            "zerGetLastErrorDescription",
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
    ] {
        let function: Any = symbol(name);
        assert_eq!(unsafe { function(0, 0, 0, 0, 0, 0) }, expected, "{name}");
    }
}
