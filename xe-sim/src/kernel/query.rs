//! Device properties: DRM_IOCTL_VERSION and DRM_IOCTL_XE_DEVICE_QUERY.

use std::mem::size_of;
use std::ptr;
use std::slice;

use super::device::Device;
use super::errno::{Errno, IoctlResult};
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
const MASK_BYTES: usize = size_of::<u64>();

pub(super) fn version(_device: &Device, argument: &mut drm_version) -> IoctlResult {
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

/// A query result: the bytes of consecutive structures.
#[derive(Default)]
struct Reply(Vec<u8>);

impl Reply {
    fn push<T: Copy>(mut self, thing: T) -> Self {
        // SAFETY: the uapi's structures are plain numbers without padding.
        let bytes = unsafe { slice::from_raw_parts((&raw const thing).cast(), size_of::<T>()) };
        self.0.extend_from_slice(bytes);
        self
    }
}

pub(super) fn device(device: &Device, argument: &mut drm_xe_device_query) -> IoctlResult {
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
            return Err(Errno(libc::EINVAL));
        }
    };
    copy_out(argument, &reply.0)
}

/// Implements the two-call protocol: a call with size 0 returns the size, the next call copies the data.
fn copy_out(argument: &mut drm_xe_device_query, reply: &[u8]) -> IoctlResult {
    if argument.size == 0 {
        argument.size = reply.len() as u32;
        return Ok(());
    }
    if argument.size as usize != reply.len() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the caller's buffer has `size` bytes.
    unsafe { ptr::copy_nonoverlapping(reply.as_ptr(), argument.data as *mut u8, reply.len()) };
    Ok(())
}

fn engines() -> Reply {
    let classes = [
        DRM_XE_ENGINE_CLASS_RENDER,
        DRM_XE_ENGINE_CLASS_COPY,
        DRM_XE_ENGINE_CLASS_COMPUTE,
    ];
    let mut reply = Reply::default().push([classes.len() as u32, 0]);
    for class in classes {
        let mut engine = drm_xe_engine::default();
        engine.instance.engine_class = class as u16;
        reply = reply.push(engine);
    }
    reply
}

fn regions(device: &Device) -> Reply {
    let mut regions = vec![drm_xe_mem_region {
        mem_class: drm_xe_memory_class_DRM_XE_MEM_REGION_CLASS_SYSMEM as u16,
        instance: 0,
        min_page_size: SYSTEM_PAGE,
        total_size: SYSTEM_MEMORY,
        ..Default::default()
    }];
    if let Some(vram) = &device.vram {
        let visible = faults::bar().unwrap_or(u64::MAX).min(vram.total());
        regions.push(drm_xe_mem_region {
            mem_class: drm_xe_memory_class_DRM_XE_MEM_REGION_CLASS_VRAM as u16,
            instance: 1,
            min_page_size: device.model().vram_page as u32,
            total_size: vram.total(),
            used: vram.used(),
            cpu_visible_size: visible,
            cpu_visible_used: vram.used().min(visible),
            ..Default::default()
        });
    }
    let reply = Reply::default().push([regions.len() as u32, 0]);
    regions.into_iter().fold(reply, Reply::push)
}

fn config(device: &Device) -> Reply {
    let model = device.model();
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
    Reply::default().push([values.len() as u32, 0]).push(values)
}

fn graphics(device: &Device) -> Reply {
    let (major, minor, revision) = device.model().ip;
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
    Reply::default().push([1u32, 0]).push(unit)
}

fn table(device: &Device) -> Reply {
    let row = |reply: Reply, (key, value)| reply.push([key, 1, value]);
    device.model().table().fold(Reply::default(), row)
}

fn topology(device: &Device) -> Reply {
    let model = device.model();
    let masks = [
        (DRM_XE_TOPO_DSS_GEOMETRY, model.subslices),
        (DRM_XE_TOPO_DSS_COMPUTE, model.subslices),
        (DRM_XE_TOPO_L3_BANK, model.l3_banks),
        (DRM_XE_TOPO_SIMD16_EU_PER_DSS, model.units),
    ];
    masks
        .into_iter()
        .fold(Reply::default(), |reply, (kind, mask)| {
            // `struct drm_xe_query_topology_mask` ends with a mask of variable length.
            reply
                .push([0u16, kind as u16])
                .push(MASK_BYTES as u32)
                .push(mask)
        })
}

/// The engine timestamp together with a CPU timestamp of the requested clock.
fn cycles(argument: &mut drm_xe_device_query) -> IoctlResult {
    if argument.size == 0 {
        argument.size = size_of::<drm_xe_query_engine_cycles>() as u32;
        return Ok(());
    }
    // SAFETY: the caller's buffer holds this structure.
    let reply = unsafe { &mut *(argument.data as *mut drm_xe_query_engine_cycles) };
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing, and the system call validates the clock id.
    if unsafe { libc::clock_gettime(reply.clockid, &raw mut time) } != 0 {
        return Err(Errno(libc::EINVAL));
    }
    reply.width = u64::BITS;
    reply.engine_cycles = timestamp();
    reply.cpu_timestamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    reply.cpu_delta = 100;
    Ok(())
}
