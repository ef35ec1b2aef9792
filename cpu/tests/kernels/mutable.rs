//! Mutable lists: what their commands execute after a change.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::extensions::{self, *};
use level_zero_sys::{ZE_RESULT_SUCCESS as OK, ze_result_t};

use super::launches::Setup;
use super::order::check_free_waits;
use super::runtime::{Runtime, call, groups, must};
use crate::common::newer;

const INVALID: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

type NextId = unsafe extern "C" fn(
    sys::ze_command_list_handle_t,
    *const ze_mutable_command_id_exp_desc_t,
    *mut u64,
) -> ze_result_t;
type Update = unsafe extern "C" fn(
    sys::ze_command_list_handle_t,
    *const ze_mutable_commands_exp_desc_t,
) -> ze_result_t;
type UpdateSignal =
    unsafe extern "C" fn(sys::ze_command_list_handle_t, u64, sys::ze_event_handle_t) -> ze_result_t;
type UpdateWaits = unsafe extern "C" fn(
    sys::ze_command_list_handle_t,
    u64,
    u32,
    *mut sys::ze_event_handle_t,
) -> ze_result_t;
type UpdateKernels = unsafe extern "C" fn(
    sys::ze_command_list_handle_t,
    u32,
    *mut u64,
    *mut sys::ze_kernel_handle_t,
) -> ze_result_t;
type IsMutable =
    unsafe extern "C" fn(sys::ze_command_list_handle_t, *mut sys::ze_bool_t) -> ze_result_t;

/// A mutable list, and a queue to execute it on.
pub struct Mutable<'a> {
    runtime: &'a Runtime,
    pub list: sys::ze_command_list_handle_t,
    queue: sys::ze_command_queue_handle_t,
}

impl<'a> Mutable<'a> {
    /// A list that is mutable or not.
    pub fn new(runtime: &'a Runtime, is_mutable: bool) -> Self {
        let mutable = ze_mutable_command_list_exp_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC,
            pNext: ptr::null(),
            flags: 0,
        };
        let desc = sys::ze_command_list_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
            pNext: if is_mutable {
                (&raw const mutable).cast()
            } else {
                ptr::null()
            },
            ..Default::default()
        };
        let queue_desc = sys::ze_command_queue_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            ..Default::default()
        };
        let (mut list, mut queue) = (ptr::null_mut(), ptr::null_mut());
        let (context, device) = (runtime.context, runtime.device);
        must!(
            runtime,
            zeCommandListCreate(context, device, &raw const desc, &raw mut list)
        );
        must!(
            runtime,
            zeCommandQueueCreate(context, device, &raw const queue_desc, &raw mut queue)
        );
        Self {
            runtime,
            list,
            queue,
        }
    }

    /// The id of the next command.
    pub fn next(&self, flags: u32) -> Result<u64, ze_result_t> {
        let desc = ze_mutable_command_id_exp_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC,
            pNext: ptr::null(),
            flags,
        };
        let mut id = 0;
        // SAFETY: the function has this type, and the pointers are valid.
        let code = unsafe {
            let next: NextId = newer(c"zeCommandListGetNextCommandIdExp");
            next(self.list, &raw const desc, &raw mut id)
        };
        if code == OK { Ok(id) } else { Err(code) }
    }

    /// Makes one change, a structure that begins with a head.
    fn update<T>(&self, change: &T) -> ze_result_t {
        let desc = ze_mutable_commands_exp_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC,
            pNext: (&raw const *change).cast(),
            flags: 0,
        };
        // SAFETY: the function has this type, and the pointers are valid.
        unsafe {
            let update: Update = newer(c"zeCommandListUpdateMutableCommandsExp");
            update(self.list, &raw const desc)
        }
    }

    /// Changes an argument of a launch.
    pub fn argument<T>(&self, id: u64, index: u32, value: &T) -> ze_result_t {
        self.argument_of(id, index, size_of::<T>(), (&raw const *value).cast())
    }

    /// Changes the size of local memory of a launch.
    pub fn local_argument(&self, id: u64, index: u32, size: usize) -> ze_result_t {
        self.argument_of(id, index, size, ptr::null())
    }

    fn argument_of(&self, id: u64, index: u32, size: usize, value: *const c_void) -> ze_result_t {
        self.update(&ze_mutable_kernel_argument_exp_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
            pNext: ptr::null(),
            commandId: id,
            argIndex: index,
            argSize: size,
            pArgValue: value,
        })
    }

    pub fn close(&self) {
        must!(self.runtime, zeCommandListClose(self.list));
    }

    fn submit(&self) {
        let mut list = self.list;
        must!(
            self.runtime,
            zeCommandQueueExecuteCommandLists(self.queue, 1, &raw mut list, ptr::null_mut())
        );
    }

    fn wait(&self) {
        must!(
            self.runtime,
            zeCommandQueueSynchronize(self.queue, u64::MAX)
        );
    }

    /// Executes the list, to its end.
    pub fn execute(&self) {
        self.submit();
        self.wait();
    }
}

/// `increase(x, 10, (0, 0))` in groups of 2.
fn increase(setup: &Setup, x: &[u32]) -> sys::ze_kernel_handle_t {
    let kernel = setup.kernel("increase", 2);
    assert_eq!(setup.runtime.set(kernel, 0, x.as_ptr()), OK);
    assert_eq!(setup.runtime.set(kernel, 1, 10_u32), OK);
    assert_eq!(setup.runtime.set(kernel, 2, [0_u32, 0]), OK);
    kernel
}

#[test]
fn arguments_and_ranges_change_between_executions() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let (x, y) = (runtime.shared(&[0; 8]), runtime.shared(&[0; 8]));
    let list = Mutable::new(runtime, true);
    let kernel = increase(&setup, x);
    let id = list.next(0).unwrap();
    runtime.launch(list.list, kernel, 2, ptr::null_mut(), &[]);
    // A launch without an id stays as it is.
    runtime.launch(list.list, kernel, 1, ptr::null_mut(), &[]);
    list.close();
    list.execute();
    assert_eq!(x, [20, 20, 10, 10, 0, 0, 0, 0]);

    assert_eq!(list.argument(id, 0, &y.as_ptr()), OK);
    assert_eq!(list.argument(id, 1, &3_u32), OK);
    let count = groups(3);
    let groups = ze_mutable_group_count_exp_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
        pNext: ptr::null(),
        commandId: id,
        pGroupCount: &raw const count,
    };
    assert_eq!(list.update(&groups), OK);
    list.close();
    list.execute();
    assert_eq!(x, [30, 30, 10, 10, 0, 0, 0, 0]);
    assert_eq!(y, [3, 3, 3, 3, 3, 3, 0, 0]);

    let group = ze_mutable_group_size_exp_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC,
        pNext: ptr::null(),
        commandId: id,
        groupSizeX: 1,
        groupSizeY: 1,
        groupSizeZ: 1,
    };
    let offset = ze_mutable_global_offset_exp_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC,
        pNext: (&raw const group).cast(),
        commandId: id,
        offsetX: 4,
        offsetY: 0,
        offsetZ: 0,
    };
    assert_eq!(list.update(&offset), OK);
    list.close();
    list.execute();
    assert_eq!(y, [3, 3, 3, 3, 6, 6, 3, 0], "three groups of one from 4 on");
}

#[test]
fn a_launch_has_the_indirect_access_of_its_append() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let x = runtime.shared(&[0; 8]);
    let (list, gates) = (Mutable::new(runtime, true), runtime.events(1));
    let kernel = increase(&setup, x);
    let id = list.next(0).unwrap();
    must!(runtime, zeKernelSetIndirectAccess(kernel, 4));
    runtime.launch(list.list, kernel, 2, ptr::null_mut(), &gates);
    must!(runtime, zeKernelSetIndirectAccess(kernel, 0));
    assert_eq!(list.argument(id, 1, &3_u32), OK);
    list.close();
    list.submit();
    check_free_waits(runtime, &gates);
    list.wait();
    assert_eq!(x, [3, 3, 3, 3, 0, 0, 0, 0]);
}

#[test]
fn events_and_kernels_change_between_executions() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let x = runtime.shared(&[0; 4]);
    let events = runtime.events(4);
    let list = Mutable::new(runtime, true);
    let kernel = increase(&setup, x);
    let id = list
        .next(
            extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT
                | extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS
                | extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION,
        )
        .unwrap();
    runtime.launch(list.list, kernel, 1, events[0], &[events[1]]);
    list.close();
    // SAFETY: the functions have these types.
    let (signal, waits, kernels): (UpdateSignal, UpdateWaits, UpdateKernels) = unsafe {
        (
            newer(c"zeCommandListUpdateMutableCommandSignalEventExp"),
            newer(c"zeCommandListUpdateMutableCommandWaitEventsExp"),
            newer(c"zeCommandListUpdateMutableCommandKernelsExp"),
        )
    };
    // SAFETY: the arrays outlive the calls, here and below.
    let update_waits = |events: &mut [sys::ze_event_handle_t]| unsafe {
        let place = if events.is_empty() {
            ptr::null_mut()
        } else {
            events.as_mut_ptr()
        };
        waits(list.list, id, events.len() as u32, place)
    };
    // SAFETY: the event is alive.
    assert_eq!(unsafe { signal(list.list, id, events[2]) }, OK);
    assert_eq!(
        update_waits(&mut [events[1], events[3]]),
        sys::ZE_RESULT_ERROR_INVALID_SIZE
    );
    assert_eq!(update_waits(&mut [events[3]]), OK);
    list.close();
    must!(runtime, zeEventHostSignal(events[3]));
    list.execute();
    assert_eq!(x, [10, 10, 0, 0]);
    must!(runtime, zeEventQueryStatus(events[2]));
    assert_eq!(
        call!(runtime, zeEventQueryStatus(events[0])),
        sys::ZE_RESULT_NOT_READY
    );

    let (mut constant, mut which) = (setup.kernel("constant", 4), id);
    assert_eq!(runtime.set(constant, 0, x.as_ptr()), OK);
    // SAFETY: one id and one kernel are passed.
    let changed = unsafe { kernels(list.list, 1, &raw mut which, &raw mut constant) };
    assert_eq!(changed, OK);
    assert_eq!(update_waits(&mut []), OK);
    list.close();
    list.execute();
    assert_eq!(x, [7; 4]);
}

#[test]
fn only_what_may_change_changes() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let x = runtime.shared(&[0; 4]);
    let fixed = Mutable::new(runtime, false);
    assert_eq!(fixed.next(0), Err(INVALID));
    let list = Mutable::new(runtime, true);
    for (one, expected) in [(&fixed, 0), (&list, 1)] {
        let mut value = 9;
        // SAFETY: the function has this type, and the pointer is valid.
        let code = unsafe {
            let is_mutable: IsMutable = newer(c"zeCommandListIsMutableExp");
            is_mutable(one.list, &raw mut value)
        };
        assert_eq!((code, value), (OK, expected));
    }
    let kernel = increase(&setup, x);
    let id = list
        .next(extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT)
        .unwrap();
    assert_eq!(list.argument(id, 1, &5_u32), INVALID, "not appended");
    runtime.launch(list.list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(list.argument(id, 1, &5_u32), INVALID, "only groups change");
    let free = list.next(0).unwrap();
    runtime.launch(list.list, kernel, 1, ptr::null_mut(), &[]);
    for unknown in [0, free + 1, u64::MAX] {
        assert_eq!(list.argument(unknown, 1, &5_u32), INVALID);
    }
    assert_eq!(
        list.argument(free, 7, &5_u32),
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX
    );
    let unknown = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    assert_eq!(
        list.update(&unknown),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
    );
    list.close();
    assert_eq!(list.next(0), Err(INVALID), "it is closed");
    list.execute();
    assert_eq!(x, [20, 20, 0, 0]);
    must!(runtime, zeCommandListReset(list.list));
    assert_eq!(list.argument(free, 1, &5_u32), INVALID, "it is empty");
}

#[test]
fn the_device_tells_what_may_change() {
    let Some(setup) = Setup::new() else { return };
    let mut lists = ze_mutable_command_list_exp_properties_t {
        stype: extensions::ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES,
        pNext: ptr::null_mut(),
        mutableCommandListFlags: 9,
        mutableCommandFlags: 0,
    };
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut lists).cast(),
        ..Default::default()
    };
    must!(
        setup.runtime,
        zeDeviceGetProperties(setup.runtime.device, &raw mut properties)
    );
    assert_eq!(
        (lists.mutableCommandListFlags, lists.mutableCommandFlags),
        (0, 0x7f)
    );
}
