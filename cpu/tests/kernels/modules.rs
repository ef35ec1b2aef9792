//! Building and querying modules.

use std::ffi::{CStr, c_void};
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use level_zero_sys::extensions;

use super::programs::{self, module};
use super::runtime::{Runtime, call, description, must};

#[test]
fn a_module_names_its_kernels() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let mut count = 0;
    must!(
        runtime,
        zeModuleGetKernelNames(module, &raw mut count, ptr::null_mut())
    );
    let mut names = vec![ptr::null(); count as usize];
    must!(
        runtime,
        zeModuleGetKernelNames(module, &raw mut count, names.as_mut_ptr())
    );
    // SAFETY: the library's names end in a null and live as long as the module.
    let names: Vec<_> = names
        .iter()
        .map(|name| unsafe { CStr::from_ptr(*name) }.to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "add",
            "increase",
            "shared_memory",
            "constant",
            "eights",
            "work",
            "meet"
        ]
    );
    let mut properties = sys::ze_module_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MODULE_PROPERTIES,
        flags: u32::MAX,
        ..Default::default()
    };
    must!(runtime, zeModuleGetProperties(module, &raw mut properties));
    assert_eq!(properties.flags, 0);
    must!(runtime, zeModuleDestroy(module));
}

#[test]
fn kernels_of_two_devices_run_in_the_order_of_their_events() {
    let Some(first) = Runtime::with_compiler() else {
        return;
    };
    let last = first.on_last_device();
    assert_ne!(first.device, last.device);
    let (event, memory) = (first.events(1)[0], first.shared(&[1; 4]));
    let kernels = [&first, &last].map(|runtime| {
        let module = runtime.build(&module(), &[]).unwrap();
        let kernel = runtime.kernel(module, "increase").unwrap();
        must!(runtime, zeKernelSetGroupSize(kernel, 4, 1, 1));
        assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
        assert_eq!(runtime.set(kernel, 1, 10_u32), OK);
        assert_eq!(runtime.set(kernel, 2, [0_u32, 100]), OK);
        kernel
    });
    let (earlier, later) = (first.immediate(true), last.immediate(true));
    // The second launch waits for the event of the first, which is appended later.
    last.launch(later, kernels[1], 1, ptr::null_mut(), &[event]);
    assert_eq!(memory, [1; 4]);
    first.launch(earlier, kernels[0], 1, event, &[]);
    assert_eq!(last.synchronize(later), OK);
    assert_eq!(memory, [221; 4]);
}

#[test]
fn kernel_properties_match_the_source() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "eights").unwrap();
    let mut most = extensions::ze_kernel_max_group_size_properties_ext_t {
        stype: extensions::ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES,
        pNext: ptr::null_mut(),
        maxGroupSize: 0,
    };
    let mut preferred = sys::ze_kernel_preferred_group_size_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES,
        pNext: (&raw mut most).cast(),
        ..Default::default()
    };
    let mut properties = sys::ze_kernel_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
        pNext: (&raw mut preferred).cast(),
        ..Default::default()
    };
    properties.uuid.kid = [7; 16];
    properties.uuid.mid = [7; 16];
    must!(runtime, zeKernelGetProperties(kernel, &raw mut properties));
    let uuid = (properties.uuid.kid, properties.uuid.mid);
    assert_eq!(uuid, ([0; 16], [0; 16]), "kernels have none");
    assert_eq!(properties.numKernelArgs, 1);
    let required = [
        properties.requiredGroupSizeX,
        properties.requiredGroupSizeY,
        properties.requiredGroupSizeZ,
    ];
    assert_eq!(required, [8, 1, 1]);
    assert!(properties.maxSubgroupSize > 0 && preferred.preferredMultiple > 0);
    assert!(most.maxGroupSize >= 8);
    let mut size = 0;
    must!(
        runtime,
        zeKernelGetName(kernel, &raw mut size, ptr::null_mut())
    );
    let mut name = vec![0; size];
    must!(
        runtime,
        zeKernelGetName(kernel, &raw mut size, name.as_mut_ptr())
    );
    // SAFETY: the library ends the name with a null.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"eights");
    let mut size = 0;
    must!(
        runtime,
        zeKernelGetSourceAttributes(kernel, &raw mut size, ptr::null_mut())
    );
    let mut text = vec![0; size as usize];
    let mut place = text.as_mut_ptr();
    must!(
        runtime,
        zeKernelGetSourceAttributes(kernel, &raw mut size, &raw mut place)
    );
    // SAFETY: likewise.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    assert_eq!(text, c"reqd_work_group_size(8,1,1)");
    let mut flags = 0;
    must!(runtime, zeKernelSetIndirectAccess(kernel, 7));
    must!(runtime, zeKernelGetIndirectAccess(kernel, &raw mut flags));
    assert_eq!(flags, 7);
    must!(runtime, zeKernelSetCacheConfig(kernel, 1));
    must!(runtime, zeKernelDestroy(kernel));
    must!(runtime, zeModuleDestroy(module));
}

#[test]
fn the_device_reports_the_compiler_s_capabilities() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let mut module = sys::ze_device_module_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetModuleProperties(runtime.device, &raw mut module)
    );
    assert!(
        module.spirvVersionSupported >= 1 << 16,
        "{:#x}",
        module.spirvVersionSupported
    );
    assert_ne!(module.flags & sys::ZE_DEVICE_MODULE_FLAG_FP64.0, 0);
    assert_ne!(
        module.fp32flags & sys::ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST.0,
        0
    );
    assert!(module.maxArgumentsSize >= 1024);
    let mut compute = sys::ze_device_compute_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetComputeProperties(runtime.device, &raw mut compute)
    );
    assert!(compute.maxTotalGroupSize >= compute.maxGroupSizeX.min(64));
    assert!(compute.numSubGroupSizes > 0 && compute.subGroupSizes[0] > 0);
    assert!(compute.maxSharedLocalMemory >= 32 << 10);
}

/// The value that `constant` of the module writes.
fn constant(runtime: &Runtime, module: sys::ze_module_handle_t) -> u32 {
    let kernel = runtime.kernel(module, "constant").unwrap();
    let memory = runtime.shared(&[0]);
    assert_eq!(
        runtime.set(kernel, 0, memory.as_ptr()),
        sys::ZE_RESULT_SUCCESS
    );
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), sys::ZE_RESULT_SUCCESS);
    must!(runtime, zeCommandListDestroy(list));
    must!(runtime, zeKernelDestroy(kernel));
    memory[0]
}

#[test]
fn specialisation_constants_are_set() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    for (constants, expected) in [
        (&[][..], 7),
        (&[(programs::CONSTANT, 99)], 99),
        (&[(12345, 1)], 7),
    ] {
        let module = runtime.build(&module(), constants).unwrap();
        assert_eq!(constant(&runtime, module), expected);
        must!(runtime, zeModuleDestroy(module));
    }
}

#[test]
fn flags_that_the_compiler_knows_are_passed_on() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let code = module();
    let build = |flags: &CStr| {
        runtime.build_described(&sys::ze_module_desc_t {
            pBuildFlags: flags.as_ptr(),
            ..description(&code)
        })
    };
    for flags in [
        c"-ze-opt-disable",
        c"-ze-opt-greater-than-4GB-buffer-required -ze-opt-level=2",
        c"-g",
    ] {
        must!(runtime, zeModuleDestroy(build(flags).unwrap()));
    }
    let (code, log) = build(c"-no-such-option").unwrap_err();
    assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    assert!(!log.is_empty());
}

fn native_binary(runtime: &Runtime, module: sys::ze_module_handle_t) -> Vec<u8> {
    let mut size = 0;
    must!(
        runtime,
        zeModuleGetNativeBinary(module, &raw mut size, ptr::null_mut())
    );
    let mut native = vec![0; size];
    must!(
        runtime,
        zeModuleGetNativeBinary(module, &raw mut size, native.as_mut_ptr())
    );
    native
}

/// The conformance tests look for the level of optimisation, as Intel's driver passes it on.
#[test]
fn a_native_module_has_the_flags_of_its_build() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let code = module();
    let module = runtime.build_described(&sys::ze_module_desc_t {
        pBuildFlags: c"-ze-opt-level=1".as_ptr(),
        ..description(&code)
    });
    let native = native_binary(&runtime, module.unwrap());
    let level = b"-ze-opt-level=O1";
    assert!(native.windows(level.len()).any(|part| part == level));
}

#[test]
fn a_native_module_comes_back() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime
        .build(&module(), &[(programs::CONSTANT, 5)])
        .unwrap();
    let mut native = native_binary(&runtime, module);
    must!(runtime, zeModuleDestroy(module));
    let load = |bytes: &[u8]| {
        let format = sys::ZE_MODULE_FORMAT_NATIVE;
        runtime.build_described(&sys::ze_module_desc_t {
            format,
            ..description(bytes)
        })
    };
    let module = load(&native).unwrap();
    assert_eq!(constant(&runtime, module), 5);
    must!(runtime, zeModuleDestroy(module));
    for at in (0..native.len()).step_by(97) {
        native[at] ^= 1;
        assert_eq!(
            load(&native).unwrap_err().0,
            sys::ZE_RESULT_ERROR_INVALID_NATIVE_BINARY,
            "byte {at}"
        );
        assert!(load(&native[..at.max(1)]).is_err());
        native[at] ^= 1;
    }
}

#[test]
fn modules_that_need_each_other_are_linked() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let [caller, callee] = programs::halves(1234);
    let (code, log) = runtime.build(&caller, &[]).unwrap_err();
    assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, "{log}");
    let mut sizes = [caller.len(), callee.len()];
    let mut codes = [caller.as_ptr(), callee.as_ptr()];
    let program = sys::ze_module_program_exp_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC,
        count: 2,
        inputSizes: sizes.as_mut_ptr(),
        pInputModules: codes.as_mut_ptr(),
        ..Default::default()
    };
    let desc = sys::ze_module_desc_t {
        pNext: (&raw const program).cast(),
        inputSize: 0,
        pInputModule: ptr::null(),
        ..description(&caller)
    };
    let module = runtime.build_described(&desc).unwrap();
    let kernel = runtime.kernel(module, "whole").unwrap();
    let memory = runtime.shared(&[0; 4]);
    assert_eq!(
        runtime.set(kernel, 0, memory.as_ptr()),
        sys::ZE_RESULT_SUCCESS
    );
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 4, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), sys::ZE_RESULT_SUCCESS);
    assert_eq!(memory, [1234; 4]);
}

#[test]
fn modules_are_built_by_several_threads() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let runtime = &runtime;
    struct Everywhere<'a>(&'a Runtime);
    // SAFETY: handles are numbers, and the library is thread-safe.
    unsafe impl Sync for Everywhere<'_> {}
    let shared = &Everywhere(runtime);
    std::thread::scope(|scope| {
        for value in 0..4 {
            scope.spawn(move || {
                let module = shared
                    .0
                    .build(&module(), &[(programs::CONSTANT, value)])
                    .unwrap();
                assert_eq!(constant(shared.0, module), value);
                must!(shared.0, zeModuleDestroy(module));
            });
        }
    });
    assert_eq!(
        call!(runtime, zeModuleDestroy(ptr::null_mut())),
        sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    );
}

#[test]
fn functions_have_addresses() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let pointer_of = |name: &CStr| {
        let mut pointer = ptr::null_mut();
        let code = call!(
            runtime,
            zeModuleGetFunctionPointer(module, name.as_ptr(), &raw mut pointer)
        );
        (code, pointer)
    };
    let (code, add) = pointer_of(c"add");
    assert_eq!(code, OK);
    assert_ne!(add, pointer_of(c"work").1);
    assert_eq!(
        pointer_of(c"nothing"),
        (sys::ZE_RESULT_ERROR_INVALID_FUNCTION_NAME, ptr::null_mut())
    );
}

#[test]
fn kernels_call_exported_functions_by_their_addresses() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::function_pointers(), &[]).unwrap();
    let mut function: *mut c_void = ptr::null_mut();
    must!(
        runtime,
        zeModuleGetFunctionPointer(module, c"increment".as_ptr(), &raw mut function)
    );
    let (mut variable, mut none) = (ptr::null_mut(), ptr::null_mut());
    must!(
        runtime,
        zeModuleGetGlobalPointer(
            module,
            c"counter".as_ptr(),
            ptr::null_mut(),
            &raw mut variable
        )
    );
    assert!(!variable.is_null());
    let mut size = 0;
    must!(
        runtime,
        zeModuleGetGlobalPointer(module, c"counter".as_ptr(), &raw mut size, ptr::null_mut())
    );
    assert_eq!(size, 4);
    let code = call!(
        runtime,
        zeModuleGetFunctionPointer(module, c"counter".as_ptr(), &raw mut none)
    );
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_FUNCTION_NAME);
    assert!(none.is_null());
    let kernel = runtime.kernel(module, "call").unwrap();
    let memory = runtime.shared(&[41]);
    assert_eq!(runtime.set(kernel, 0, function as u64), OK);
    assert_eq!(runtime.set(kernel, 1, memory.as_ptr()), OK);
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory[0], 42);
    must!(runtime, zeCommandListDestroy(list));
    must!(runtime, zeKernelDestroy(kernel));
    must!(runtime, zeModuleDestroy(module));
}

#[test]
fn a_module_may_have_no_kernels() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let [_, library] = programs::halves(7);
    // Neither kernels nor the Linkage capability, as clang makes it of an empty file.
    let empty = programs::empty();
    for code in [library, empty] {
        let module = runtime.build(&code, &[]).unwrap();
        let mut count = u32::MAX;
        must!(
            runtime,
            zeModuleGetKernelNames(module, &raw mut count, ptr::null_mut())
        );
        assert_eq!(count, 0);
        assert_eq!(
            runtime.kernel(module, "half").unwrap_err(),
            sys::ZE_RESULT_ERROR_INVALID_KERNEL_NAME
        );
        must!(runtime, zeModuleDestroy(module));
    }
}

#[test]
fn atomic_operations_on_floats_are_those_of_opencl() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let mut atomics = sys::ze_float_atomic_ext_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES,
        fp16Flags: u32::MAX,
        ..Default::default()
    };
    let mut module = sys::ze_device_module_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES,
        pNext: (&raw mut atomics).cast(),
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetModuleProperties(runtime.device, &raw mut module)
    );
    // Intel's OpenCL runtime adds and compares single and double precision, and half precision on some processors, in global
    // and local memory.
    let all = sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_LOAD_STORE.0
        | sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD.0
        | sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_MIN_MAX.0
        | sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_LOAD_STORE.0
        | sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_ADD.0
        | sys::ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_MIN_MAX.0;
    assert_eq!([atomics.fp32Flags, atomics.fp64Flags], [all, all]);
    assert!([0, all].contains(&atomics.fp16Flags), "it was not written");
}

#[test]
fn atomic_operations_on_generic_pointers_are_built_and_count() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::generic_atomics(), &[]).unwrap();
    let kernel = runtime.kernel(module, "count").unwrap();
    let memory = runtime.shared(&[0; 2]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 1000, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory, [1000, 0]);
}
