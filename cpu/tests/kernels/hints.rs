//! Scheduling hints, which change nothing.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::launches::Setup;
use super::runtime::call;

#[test]
fn hints_are_accepted_and_none_is_claimed() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let mut hints = sys::ze_scheduling_hint_exp_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_PROPERTIES,
        schedulingHintFlags: 7,
        ..Default::default()
    };
    let mut properties = sys::ze_device_module_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES,
        pNext: (&raw mut hints).cast(),
        ..Default::default()
    };
    let device = runtime.device;
    assert_eq!(
        call!(
            runtime,
            zeDeviceGetModuleProperties(device, &raw mut properties)
        ),
        OK
    );
    assert_eq!(hints.schedulingHintFlags, 0);

    let list = runtime.immediate(true);
    let x = runtime.shared(&[0]);
    let kernel = setup.kernel("constant", 1);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    let mut hint = sys::ze_scheduling_hint_exp_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_DESC,
        ..Default::default()
    };
    for (flags, expected) in [
        (0, OK),
        (sys::ZE_SCHEDULING_HINT_EXP_FLAG_OLDEST_FIRST.0, OK),
        (sys::ZE_SCHEDULING_HINT_EXP_FLAG_ROUND_ROBIN.0, OK),
        (
            sys::ZE_SCHEDULING_HINT_EXP_FLAG_STALL_BASED_ROUND_ROBIN.0,
            OK,
        ),
        (8, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
    ] {
        hint.flags = flags;
        let code = call!(runtime, zeKernelSchedulingHintExp(kernel, &raw mut hint));
        assert_eq!(code, expected, "{flags}");
        x[0] = 0;
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        assert_eq!(runtime.synchronize(list), OK);
        assert_ne!(x[0], 0);
    }
    let code = call!(runtime, zeKernelSchedulingHintExp(kernel, ptr::null_mut()));
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER);
}
