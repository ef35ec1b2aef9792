//! Several devices of one driver: memory, pools, queues and IPC on each one, and copies between any two.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;

use std::env;
use std::process::Command;

use zeusm::ipc;
use zeusm::runtime::CpuDevices;
use zeusm::usm::Allocation;
use zeusm::{
    Context, Device, DeviceMemory, Error, IpcHandle, Queue, Runtime, SharedMemory, UsmKind,
};

const KINDS: [UsmKind; 3] = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];
/// Not a multiple of the staging chunk.
const SIZE: usize = (4 << 20) + 5;

/// A context of the first driver, and its devices.
fn setup() -> (Context, &'static [Device]) {
    let driver = &Runtime::get().unwrap().drivers()[0];
    (Context::new(driver).unwrap(), driver.devices().unwrap())
}

/// Every ordered pair of devices.
fn pairs(devices: &[Device]) -> impl Iterator<Item = (&Device, &Device)> {
    devices
        .iter()
        .flat_map(move |first| devices.iter().map(move |second| (first, second)))
}

/// Whether the devices are those of the CPU runtime.
fn are_of_cpu_runtime(devices: &[Device]) -> bool {
    devices[0].name().starts_with("zeusm CPU runtime")
}

#[test]
fn the_cpu_runtime_has_a_gpu_and_a_cpu_on_request() {
    let runtime = Runtime::get().unwrap();
    assert_eq!(&runtime.default_device().unwrap(), &runtime.devices()[0]);
    if are_of_cpu_runtime(runtime.devices()) {
        let types: Vec<bool> = runtime.devices().iter().map(Device::is_gpu).collect();
        let mut expected = vec![true; env::var(GPUS).map_or(1, |gpus| gpus.parse().unwrap())];
        let variable = env::var("ZEUSM_CPU_DEVICES").unwrap_or_default();
        expected.extend(variable.ends_with("+cpu").then_some(false));
        assert_eq!(types, expected);
    }
}

/// The number of GPUs that a child of [`all_of_this_holds_on_several_devices`] has.
const GPUS: &str = "ZEUSM_TEST_GPUS";

#[test]
fn all_of_this_holds_on_several_devices() {
    if env::var_os(GPUS).is_some() || !are_of_cpu_runtime(setup().1) {
        return;
    }
    for (gpus, variables) in [
        ("1", &[("ZEUSM_CPU_DEVICES", "1")][..]),
        ("1", &[("ZEUSM_CPU_DEVICES", "1+cpu")]),
        ("3", &[("ZEUSM_CPU_DEVICES", "3")]),
        (
            "2",
            &[("ZEUSM_CPU_DEVICES", "2"), ("ZEUSM_CPU_PEER_ACCESS", "0")],
        ),
        (
            "2",
            &[
                ("ZEUSM_CPU_TILES", "2"),
                ("ZE_FLAT_DEVICE_HIERARCHY", "FLAT"),
            ],
        ),
        (
            "4",
            &[
                ("ZEUSM_CPU_DEVICES", "2"),
                ("ZEUSM_CPU_TILES", "2"),
                ("ZEUSM_CPU_PEER_ACCESS", "0"),
                ("ZE_FLAT_DEVICE_HIERARCHY", "COMBINED"),
            ],
        ),
    ] {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(GPUS, gpus).envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{variables:?}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_program_chooses_the_devices_of_the_cpu_runtime_before_they_are_listed() {
    if are_of_cpu_runtime(setup().1) {
        assert!(matches!(
            Runtime::set_cpu_devices(CpuDevices {
                gpus: 7,
                ..CpuDevices::default()
            }),
            Err(Error::DevicesListed)
        ));
        let is_direct = env::var_os("ZEUSM_TEST_MODE").is_none_or(|mode| mode == "direct");
        if is_direct && env::var_os(GPUS).is_none() {
            child::run(child::command("child_chooses_devices"));
        }
    }
}

#[test]
#[ignore = "run by the_program_chooses_the_devices_of_the_cpu_runtime_before_they_are_listed"]
fn child_chooses_devices() {
    let choose = |gpus, tiles| {
        Runtime::set_cpu_devices(CpuDevices {
            gpus,
            cpu: true,
            tiles,
            peer_access: false,
        })
    };
    for (gpus, tiles) in [(0, 1), (1, 0), (33, 1), (1, 17)] {
        let error = choose(gpus, tiles).unwrap_err();
        assert!(matches!(error, Error::InvalidCpuDevices { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("is not a number from 1 to"), "{text}");
        assert!(!text.contains("ZEUSM_CPU"), "{text}");
    }
    choose(2, 3).unwrap();
    choose(2, 3).unwrap();
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.devices().len(), 3);
    assert!(
        !runtime.devices()[0]
            .can_access(&runtime.devices()[1])
            .unwrap()
    );
    assert!(matches!(choose(2, 1), Err(Error::DevicesListed)));
}

#[test]
fn devices_differ_in_handle_and_uuid() {
    let (_, devices) = setup();
    for (index, device) in devices.iter().enumerate() {
        for other in &devices[..index] {
            assert_ne!(device, other);
            assert_ne!(device.uuid(), other.uuid());
        }
    }
}

#[test]
fn a_driver_lists_the_devices_that_its_own_are_parts_of() {
    for device in setup().1 {
        let (driver, mut whole) = (device.driver(), std::ptr::null_mut());
        if let Some(root) = driver.library().zeDeviceGetRootDevice {
            // SAFETY: the device is alive, and there is room for the handle.
            let _ = unsafe { root(device.handle(), &mut whole) };
        }
        let handle = if whole.is_null() {
            device.handle()
        } else {
            whole
        };
        assert!(driver.lists(handle).unwrap());
        assert!(!driver.lists(std::ptr::without_provenance_mut(8)).unwrap());
    }
}

#[test]
fn memory_belongs_to_the_device_that_it_was_allocated_for() {
    let (context, devices) = setup();
    for device in devices {
        for kind in KINDS {
            let pool = context.pool(device, kind).unwrap();
            for memory in [
                Allocation::direct(&context, device, kind, 1000, 0).unwrap(),
                Allocation::in_pool(&pool, 1000, 0).unwrap(),
            ] {
                assert_eq!(memory.device(), device);
                let found = context.pointer_attributes(memory.as_ptr().addr()).unwrap();
                let expected = (kind != UsmKind::Host).then_some(device);
                assert_eq!(found.device.as_ref(), expected, "{kind}");
            }
        }
    }
}

#[test]
fn each_device_has_a_pool_of_its_own() {
    let (context, devices) = setup();
    for (first, second) in pairs(devices) {
        let memory = Allocation::new(&context, first, UsmKind::Device, 100, 0).unwrap();
        let used = |device| {
            let pool = context.pool(device, UsmKind::Device).unwrap();
            assert_eq!(pool.provider().device(), device);
            pool.statistics().used_count
        };
        assert_eq!(used(second), usize::from(first == second));
        drop(memory);
    }
}

#[test]
fn a_queue_copies_and_fills_memory_of_a_peer() {
    let (context, devices) = setup();
    for (here, there) in pairs(devices) {
        let queue = Queue::new(&context, here).unwrap();
        let mut far = DeviceMemory::new(&context, there, SIZE).unwrap();
        let filled = queue.fill(&mut far, 3);
        if !here.can_access(there).unwrap() {
            assert!(matches!(filled, Err(Error::NoPeerAccess { .. })));
            continue;
        }
        filled.unwrap();
        let mut near = SharedMemory::new(&context, here, SIZE).unwrap();
        queue.copy(&mut near, &far).unwrap();
        assert!(near.as_slice().unwrap().iter().all(|byte| *byte == 3));
    }
}

#[test]
fn memory_is_copied_between_the_queues_of_any_two_devices() {
    let (there, devices) = setup();
    let (here, _) = setup();
    for (to, from) in pairs(devices) {
        // Within a context, and from one to another.
        for context in [&there, &here] {
            let queues = (
                Queue::new(context, to).unwrap(),
                Queue::new(&there, from).unwrap(),
            );
            let mut source = SharedMemory::new(&there, from, SIZE).unwrap();
            for (index, byte) in source.as_mut_slice().unwrap().iter_mut().enumerate() {
                *byte = (index % 251) as u8;
            }
            let memory = SharedMemory::new(context, to, SIZE).unwrap();
            let (into, out) = (memory.as_ptr().cast_mut().cast(), source.as_ptr().cast());
            // SAFETY: both are alive until this returns, and have `SIZE` bytes.
            unsafe { queues.0.peer_copy_raw(into, &queues.1, out, SIZE) }.unwrap();
            assert!(memory.as_slice().unwrap() == source.as_slice().unwrap());
        }
    }
}

#[test]
fn a_handle_opens_on_the_device_of_its_memory_only() {
    let (context, devices) = setup();
    for (owner, opener) in pairs(devices) {
        let memory = Allocation::new(&context, owner, UsmKind::Device, 64, 0).unwrap();
        let handle = IpcHandle::new(&memory, 0..64).unwrap();
        assert_eq!(handle.device_uuid(), owner.uuid());
        match handle.open(&context, opener) {
            Ok(mapping) => assert!(mapping.device() == opener && owner == opener),
            Err(error) => {
                assert!(matches!(error, ipc::Error::AnotherDevice { .. }), "{error}");
                assert_ne!(owner, opener);
                assert!(error.to_string().contains(opener.name()), "{error}");
            }
        }
    }
}
