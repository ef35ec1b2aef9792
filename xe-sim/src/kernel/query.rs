//! Device properties: DRM_IOCTL_VERSION and DRM_IOCTL_XE_DEVICE_QUERY.

use std::mem::size_of;
use std::ptr;
use std::slice;

use rustix::io::{Errno, Result};
use rustix::time::{ClockId, clock_gettime};

use super::device::Device;
use crate::engine::{TIMESTAMP_HZ, timestamp};
use crate::faults;
use crate::report::log;
use crate::uapi::*;

const NAME: &[u8] = b"xe";
/// The reported size of system memory.
const SYSTEM_MEMORY: u64 = 16 << 30;
const SYSTEM_PAGE: u32 = 4096;
const ADDRESS_BITS: u64 = 48;
const HIGHEST_PRIORITY: u64 = 2;
/// Region masks: region 0 is system memory, region 1 VRAM.
const SYSTEM: u64 = 1 << 0;
const DEVICE: u64 = 1 << 1;
const MASK_BYTES: u32 = size_of::<u64>() as u32;

pub(super) fn version(_device: &Device, argument: &mut drm_version) -> Result<()> {
    argument.version_major = 1;
    argument.version_minor = 1;
    if !argument.name.is_null() {
        let length = NAME.len().min(argument.name_len as usize);
        // SAFETY: the caller's buffer has `name_len` bytes.
        unsafe { ptr::copy_nonoverlapping(NAME.as_ptr(), argument.name.cast(), length) };
    }
    argument.name_len = NAME.len() as _;
    argument.date_len = 0;
    argument.desc_len = 0;
    Ok(())
}

/// The bytes of a number, a structure, or an array of these.
fn bytes<T: Copy>(thing: T) -> Vec<u8> {
    // SAFETY: the uapi's structures are plain numbers without padding.
    unsafe { slice::from_raw_parts((&raw const thing).cast(), size_of::<T>()) }.to_vec()
}

pub(super) fn device(device: &Device, argument: &mut drm_xe_device_query) -> Result<()> {
    let reply = match argument.query {
        DRM_XE_DEVICE_QUERY_ENGINES => engines(),
        DRM_XE_DEVICE_QUERY_MEM_REGIONS => regions(device),
        DRM_XE_DEVICE_QUERY_CONFIG => config(device),
        DRM_XE_DEVICE_QUERY_GT_LIST => graphics(device),
        DRM_XE_DEVICE_QUERY_HWCONFIG => table(device),
        DRM_XE_DEVICE_QUERY_GT_TOPOLOGY => topology(device),
        DRM_XE_DEVICE_QUERY_ENGINE_CYCLES => return cycles(argument),
        other => {
            // A kernel that does not know the query returns the same error.
            log(format_args!("device query {other} is not known"));
            return Err(Errno::INVAL);
        }
    };
    copy_out(argument, &reply)
}

/// Implements the two-call protocol: a call with size 0 returns the size, the next call copies the data.
fn copy_out(argument: &mut drm_xe_device_query, reply: &[u8]) -> Result<()> {
    if argument.size == 0 {
        argument.size = reply.len() as u32;
        return Ok(());
    }
    if argument.size as usize != reply.len() {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's buffer has `size` bytes.
    unsafe { ptr::copy_nonoverlapping(reply.as_ptr(), argument.data as *mut u8, reply.len()) };
    Ok(())
}

fn engines() -> Vec<u8> {
    let classes = [
        DRM_XE_ENGINE_CLASS_RENDER,
        DRM_XE_ENGINE_CLASS_COPY,
        DRM_XE_ENGINE_CLASS_COMPUTE,
    ];
    let engines = classes.map(|class| {
        let mut engine = drm_xe_engine::default();
        engine.instance.engine_class = class as u16;
        engine
    });
    [bytes([classes.len() as u32, 0]), bytes(engines)].concat()
}

fn regions(device: &Device) -> Vec<u8> {
    let mut regions = vec![drm_xe_mem_region {
        mem_class: drm_xe_memory_class_DRM_XE_MEM_REGION_CLASS_SYSMEM as u16,
        instance: 0,
        min_page_size: SYSTEM_PAGE,
        total_size: SYSTEM_MEMORY,
        ..Default::default()
    }];
    if let Some(vram) = &device.vram {
        let visible = faults::bar().unwrap_or(u64::MAX).min(vram.total);
        regions.push(drm_xe_mem_region {
            mem_class: drm_xe_memory_class_DRM_XE_MEM_REGION_CLASS_VRAM as u16,
            instance: 1,
            min_page_size: device.slot.model.vram_page as u32,
            total_size: vram.total,
            used: vram.used(),
            cpu_visible_size: visible,
            cpu_visible_used: vram.used().min(visible),
            ..Default::default()
        });
    }
    let mut reply = bytes([regions.len() as u32, 0]);
    reply.extend(regions.into_iter().flat_map(bytes));
    reply
}

fn config(device: &Device) -> Vec<u8> {
    let model = device.slot.model;
    let mut flags = DRM_XE_QUERY_CONFIG_FLAG_HAS_LOW_LATENCY;
    if model.vram.is_some() {
        flags |= DRM_XE_QUERY_CONFIG_FLAG_HAS_VRAM;
    }
    let mut values = [0; DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY as usize + 1];
    let mut set = |key: u32, value: u64| values[key as usize] = value;
    let revision_and_device = u64::from(model.revision) << 16 | u64::from(model.device);
    set(DRM_XE_QUERY_CONFIG_REV_AND_DEVICE_ID, revision_and_device);
    set(DRM_XE_QUERY_CONFIG_FLAGS, flags.into());
    set(DRM_XE_QUERY_CONFIG_MIN_ALIGNMENT, model.vram_page);
    set(DRM_XE_QUERY_CONFIG_VA_BITS, ADDRESS_BITS);
    set(
        DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY,
        HIGHEST_PRIORITY,
    );
    [bytes([values.len() as u32, 0]), bytes(values)].concat()
}

fn graphics(device: &Device) -> Vec<u8> {
    let (major, minor, revision) = device.slot.model.ip;
    let (near, far) = match device.vram {
        Some(_) => (DEVICE, SYSTEM),
        None => (SYSTEM, 0),
    };
    let unit = drm_xe_gt {
        type_: DRM_XE_QUERY_GT_TYPE_MAIN as u16,
        reference_clock: TIMESTAMP_HZ as u32,
        near_mem_regions: near,
        far_mem_regions: far,
        ip_ver_major: major,
        ip_ver_minor: minor,
        ip_ver_rev: revision,
        ..Default::default()
    };
    [bytes([1u32, 0]), bytes(unit)].concat()
}

fn table(device: &Device) -> Vec<u8> {
    let rows = device.slot.model.table().into_iter();
    rows.flat_map(|(key, value)| bytes([key, 1, value]))
        .collect()
}

fn topology(device: &Device) -> Vec<u8> {
    let model = device.slot.model;
    let masks = [
        (DRM_XE_TOPO_DSS_GEOMETRY, model.subslices),
        (DRM_XE_TOPO_DSS_COMPUTE, model.subslices),
        (DRM_XE_TOPO_L3_BANK, model.l3_banks),
        (DRM_XE_TOPO_SIMD16_EU_PER_DSS, model.units),
    ];
    // `struct drm_xe_query_topology_mask` ends with a mask of variable length.
    let entry = |(kind, mask)| [bytes([0, kind as u16]), bytes(MASK_BYTES), bytes(mask)].concat();
    masks.into_iter().flat_map(entry).collect()
}

/// The engine timestamp together with a CPU timestamp of the requested clock.
fn cycles(argument: &mut drm_xe_device_query) -> Result<()> {
    if argument.size == 0 {
        argument.size = size_of::<drm_xe_query_engine_cycles>() as u32;
        return Ok(());
    }
    // SAFETY: the caller's buffer holds this structure.
    let reply = unsafe { &mut *(argument.data as *mut drm_xe_query_engine_cycles) };
    let clock = ClockId::try_from(reply.clockid).map_err(|_| Errno::INVAL)?;
    let time = clock_gettime(clock);
    reply.width = u64::BITS;
    reply.engine_cycles = timestamp();
    reply.cpu_timestamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    reply.cpu_delta = 100;
    Ok(())
}
