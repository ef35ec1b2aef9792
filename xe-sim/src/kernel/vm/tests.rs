#![allow(clippy::unwrap_used)]

use super::*;
use crate::machine;
use crate::memory::Buffer;
use crate::report::in_child;

fn bound(flags: u32) -> Result<AddressSpace> {
    let device = Device::new(&machine::named("lnl").unwrap().slots[0]);
    let operation = drm_xe_vm_bind_op {
        obj: device.buffers.add(Buffer::new(PAGE, None).unwrap()),
        range: PAGE,
        op: DRM_XE_VM_BIND_OP_MAP,
        flags,
        ..Default::default()
    };
    let space = AddressSpace::default();
    bind_one(&device, &space, &operation).map(|()| space)
}

#[test]
fn flags_of_an_address_space_are_refused_or_reported() {
    let device = Device::new(&machine::named("lnl").unwrap().slots[0]);
    let created = |flags| {
        let mut argument = drm_xe_vm_create {
            flags,
            ..Default::default()
        };
        create(&device, &mut argument)
    };
    let fault_mode = created(DRM_XE_VM_CREATE_FLAG_FAULT_MODE);
    assert_eq!(fault_mode, Err(Errno::INVAL));
    assert_eq!(created(DRM_XE_VM_CREATE_FLAG_LR_MODE), Ok(()));
    let told = in_child(
        "kernel::vm::tests::flags_of_an_address_space_are_refused_or_reported",
        || assert!(created(DRM_XE_VM_CREATE_FLAG_SCRATCH_PAGE).is_ok()),
    );
    let expected = "not simulated: DRM_IOCTL_XE_VM_CREATE with flags 0x1";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_bind_may_be_read_only() {
    assert!(bound(0).unwrap().store(0, 1).is_ok());
    let space = bound(DRM_XE_VM_BIND_FLAG_READONLY).unwrap();
    assert!(space.store(0, 1).is_err() && space.load(0) == Ok(0));
}

#[test]
fn flags_of_a_bind_are_refused_or_reported() {
    let error = bound(DRM_XE_VM_BIND_FLAG_CPU_ADDR_MIRROR).unwrap_err();
    assert_eq!(error, Errno::INVAL);
    let told = in_child(
        "kernel::vm::tests::flags_of_a_bind_are_refused_or_reported",
        || drop(bound(DRM_XE_VM_BIND_FLAG_CHECK_PXP)),
    );
    let expected = "not simulated: DRM_IOCTL_XE_VM_BIND with flags 0x10";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_bind_of_user_memory_may_fail() {
    let device = Device::new(&machine::named("lnl").unwrap().slots[0]);
    let bound = |address: u64, flags| {
        let mut operation = drm_xe_vm_bind_op {
            range: PAGE,
            op: DRM_XE_VM_BIND_OP_MAP_USERPTR,
            flags,
            ..Default::default()
        };
        operation.__bindgen_anon_1.userptr = address;
        bind_one(&device, &AddressSpace::default(), &operation)
    };
    static CONSTANT: [u8; 3 * PAGE as usize] = [7; 3 * PAGE as usize];
    let constant = (CONSTANT.as_ptr() as u64).next_multiple_of(PAGE);
    let own = vec![0u8; 2 * PAGE as usize];
    let own = (own.as_ptr() as u64).next_multiple_of(PAGE);
    assert_eq!(bound(own, 0), Ok(()));
    assert_eq!(bound(own + 8, 0), Err(Errno::INVAL));
    assert_eq!(bound(0, 0), Err(Errno::FAULT));
    assert_eq!(bound(constant, 0), Err(Errno::PERM));
    assert_eq!(bound(constant, DRM_XE_VM_BIND_FLAG_READONLY), Ok(()));
}
