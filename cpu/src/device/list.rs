//! The devices: the machine's processors and memory, presented as GPUs and, on request, once as a CPU.
//!
//! SYCL and its packages prefer GPUs, and SYCL 2026 looks only at drivers that have one. oneMKL has code for processors,
//! which it calls for a device of type CPU; for a GPU it looks for Intel's binaries, which this runtime does not have.
//! Several GPUs have equal shares of the processors and the memory, and so have the tiles of a GPU.

use std::env;

use level_zero_sys as sys;
use zeusm_process::Lazy;
use zeusm_process::variables::{InvalidVariable, parse, switch};

use super::layout::{self, Hierarchy, Layout, Place};
use crate::abi::arguments::input_array;
use crate::abi::entry::Argument;
use crate::abi::result::{ZeResult, described};
use crate::driver::Driver;
use crate::engine::DeviceEngine;
use crate::handle::{self, Kind};
use crate::memory::Share;
use crate::system::{memory, processor};

/// The execution units of a GPU are a multiple of this number, as on Intel's GPUs, and libraries rely on it: oneDPL's radix sort
/// launches work-groups in proportion to the units divided by 8, so with fewer it would sort nothing; ggml divides by units / 16.
const UNITS_OF_A_GPU: usize = 16;

/// Which queues and immediate lists share an engine. `1`: all, those of different devices, too, and a command that waits for
/// the host blocks it. `queue`: none. `device`, the default: those of a device do, as those of Intel's client GPUs, since oneMKL
/// and SYCL's adapter rely on it.
const ENGINES: &str = "ZEUSM_CPU_ENGINES";

/// The values of [`ENGINES`].
#[derive(Clone, Copy, Default)]
enum Engines {
    One,
    OfQueues,
    #[default]
    OfDevices,
}

fn read_engines() -> Result<Engines, InvalidVariable> {
    let expected = || "1, queue or device".to_owned();
    let engines = parse(env::var_os, ENGINES, expected, |text| match text {
        "1" => Some(Engines::One),
        "queue" => Some(Engines::OfQueues),
        "device" => Some(Engines::OfDevices),
        _ => None,
    })?;
    Ok(engines.unwrap_or_default())
}

/// With `1`, the devices are reported as discrete ones, whose shared memory the host and the device must not access
/// concurrently, as by Intel's driver. For tests.
const DISCRETE: &str = "ZEUSM_CPU_DISCRETE";

pub(super) fn is_discrete() -> bool {
    static IS_DISCRETE: Lazy<bool> = Lazy::new();
    *IS_DISCRETE.get_or_make(|| read_discreteness().unwrap_or_default())
}

fn read_discreteness() -> Result<bool, InvalidVariable> {
    Ok(switch(env::var_os, DISCRETE)?.unwrap_or_default())
}

/// Whether the host and the devices may access one word of shared memory atomically at the same time.
pub fn has_system_atomics() -> bool {
    !is_discrete()
}

/// The engine of a new device.
fn engine() -> Option<DeviceEngine> {
    static ONE: Lazy<DeviceEngine> = Lazy::new();
    match read_engines().unwrap_or_default() {
        Engines::One => Some(ONE.get_or_make(DeviceEngine::that_waits).clone()),
        Engines::OfQueues => None,
        Engines::OfDevices => Some(DeviceEngine::default()),
    }
}

/// The execution units of one of so many equal parts of the machine.
fn units(parts: u32, is_gpu: bool) -> usize {
    let multiple = if is_gpu { UNITS_OF_A_GPU } else { 1 };
    let share = processor::count() / parts as usize;
    share.max(1).next_multiple_of(multiple)
}

/// A device or a sub-device. It lives as long as the process, and a fork's child has the same ones.
pub struct Device {
    /// Its index in the list, which its handle contains.
    number: u32,
    /// Its type in the API.
    pub type_: sys::ze_device_type_t,
    /// The GPU that it is, or is a tile of; the CPU has the number after the last GPU.
    pub place: u32,
    /// Which tile.
    tile: Option<u32>,
    /// The number of the device that it is a sub-device of.
    root: Option<u32>,
    /// Its index among the sub-devices of its root device; 0 for a root device.
    pub sub_device_id: u32,
    /// The numbers of its sub-devices.
    sub_devices: Vec<u32>,
    /// The part of its name that distinguishes it from other GPUs.
    ordinal: String,
    /// How many execution units it reports: its part of the machine's processors, but as many as a GPU has at least. Its
    /// kernels may run on all of the machine's processors.
    pub execution_units: usize,
    /// Its part of the machine's memory in bytes.
    pub memory: u64,
    /// The limit of its allocations, unless that is the machine's.
    pub share: Option<&'static Share>,
    /// Whether it accesses the memory of other devices, and they its memory.
    pub peer_access: bool,
    /// Executes its commands in the order of submission; without one, each queue and immediate list is independent.
    pub engine: Option<DeviceEngine>,
}

impl Device {
    /// The GPU or CPU with the number `place`, or a tile of it.
    fn new(layout: &Layout, place: u32, tile: Option<u32>) -> Self {
        let is_gpu = place < layout.gpus;
        let devices = if is_gpu { layout.gpus } else { 1 };
        let parts = devices * tile.map_or(1, |_| layout.tiles);
        Self {
            number: 0,
            type_: if is_gpu {
                sys::ZE_DEVICE_TYPE_GPU
            } else {
                sys::ZE_DEVICE_TYPE_CPU
            },
            place,
            tile,
            root: None,
            sub_device_id: 0,
            sub_devices: Vec::new(),
            ordinal: match tile {
                Some(tile) => format!(" {place}.{tile}"),
                None if devices > 1 => format!(" {place}"),
                None => String::new(),
            },
            execution_units: units(parts, is_gpu),
            memory: memory::total() / u64::from(parts),
            share: None,
            peer_access: layout.peer_access,
            engine: engine(),
        }
    }

    /// Its handle.
    pub fn handle(&self) -> sys::ze_device_handle_t {
        handle::permanent(Kind::Device, self.number) as sys::ze_device_handle_t
    }

    /// Its name, which says that it is a CPU whatever its type.
    pub fn name(&self) -> String {
        let presented = match self.type_ {
            sys::ZE_DEVICE_TYPE_CPU => " as CPU",
            _ => &self.ordinal,
        };
        format!("zeusm CPU runtime{presented} ({})", processor::model())
    }

    /// Its identity, the same in every process of this machine and different from those of the other devices.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = processor::identity();
        let [type_, place, tile, ..] = &mut uuid;
        if self.type_ == sys::ZE_DEVICE_TYPE_CPU {
            *type_ ^= 1;
        } else {
            *place ^= self.place as u8;
            *tile ^= self.tile.map_or(0, |tile| tile as u8 + 1);
        }
        uuid
    }

    /// The device that it is a sub-device of.
    pub fn root(&self) -> Option<&'static Self> {
        self.root
            .and_then(|number| devices().all.get(number as usize))
    }

    /// The handles of its sub-devices.
    pub fn sub_devices(&self) -> Vec<sys::ze_device_handle_t> {
        devices().handles(&self.sub_devices)
    }

    /// Whether `other` is this device or a tile of it.
    pub fn includes(&self, other: &Self) -> bool {
        other.number == self.number || other.root == Some(self.number)
    }

    /// The largest single allocation without relaxed limits: half of its memory.
    pub fn max_allocation_size(&self) -> u64 {
        self.memory / 2
    }

    /// Whether it accesses the memory of `other`. The tiles of a GPU access the memory of all its tiles.
    pub fn can_access(&self, other: &Self) -> bool {
        self.peer_access || self.place == other.place
    }
}

/// All devices.
struct Devices {
    layout: Layout,
    all: Vec<Device>,
    /// The numbers of those of `zeDeviceGet`.
    listed: Vec<u32>,
}

static DEVICES: Lazy<Devices> = Lazy::new();

fn devices() -> &'static Devices {
    DEVICES.get_or_make(|| Devices::new(&Layout::of_variables(env::var_os).unwrap_or_default()))
}

impl Devices {
    fn new(layout: &Layout) -> Self {
        let mut devices = Self {
            layout: layout.clone(),
            all: Vec::new(),
            listed: Vec::new(),
        };
        for place in layout.places() {
            devices.add(&place);
        }
        devices
    }

    /// Adds the visible part of a GPU or of the CPU. A single tile is a device without sub-devices, as the specification
    /// demands; several are, or are not, sub-devices of the GPU.
    fn add(&mut self, place: &Place) {
        let layout = self.layout.clone();
        let has_tiles = place.device < layout.gpus && layout.tiles > 1;
        let device = |tile| Device::new(&layout, place.device, tile);
        let [tile] = place.tiles[..] else {
            let root = (layout.hierarchy != Hierarchy::Flat).then(|| {
                let mut root = device(None);
                let visible = place.tiles.len() as u64;
                root.memory = root.memory / u64::from(layout.tiles) * visible;
                // Not less than its tiles together.
                let fewest = units(layout.gpus * layout.tiles, true) * place.tiles.len();
                root.execution_units = root.execution_units.max(fewest);
                self.push(root, layout.hierarchy == Hierarchy::Composite, None)
            });
            for (index, &tile) in (0..).zip(&place.tiles) {
                let listed = layout.hierarchy != Hierarchy::Composite;
                self.push(device(Some(tile)), listed, root.map(|root| (root, index)));
            }
            return;
        };
        self.push(device(has_tiles.then_some(tile)), true, None);
    }

    /// Adds a device and returns its number. A sub-device has the number of its root device and an index.
    fn push(&mut self, mut device: Device, is_listed: bool, part: Option<(u32, u32)>) -> u32 {
        let number = self.all.len() as u32;
        device.number = number;
        let root = part.and_then(|(root, index)| Some((self.all.get_mut(root as usize)?, index)));
        let mut whole = None;
        if let Some((root, index)) = root {
            root.sub_devices.push(number);
            whole = root.share;
            device.root = Some(root.number);
            device.sub_device_id = index;
        }
        if device.memory < memory::total() {
            device.share = Some(Share::new(device.memory, whole));
        }
        self.all.push(device);
        if is_listed {
            self.listed.push(number);
        }
        number
    }

    fn handles(&self, numbers: &[u32]) -> Vec<sys::ze_device_handle_t> {
        let device = |number: &u32| self.all.get(*number as usize);
        numbers
            .iter()
            .filter_map(device)
            .map(Device::handle)
            .collect()
    }
}

/// Whether a GPU has sub-devices.
pub fn have_sub_devices() -> bool {
    let mut devices = devices().all.iter();
    devices.any(|device| !device.sub_devices.is_empty())
}

/// Checks the variables that describe devices.
///
/// # Errors
/// For a value that cannot be used.
pub fn check_variables() -> Result<(), InvalidVariable> {
    read_discreteness()?;
    read_engines()?;
    Layout::of_variables(env::var_os).map(drop)
}

/// `zeusmDriverPresentDevices`: presents `gpus` GPUs with `tiles` tiles each, and a CPU unless `cpu` is 0, with peer access unless that
/// is 0, in place of what the environment says. It must be called before the first call of `zeDeviceGet`.
///
/// # Errors
/// `ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE` when other devices have been listed already, `ZE_RESULT_ERROR_INVALID_ARGUMENT` for
/// numbers out of range. Both are described.
pub fn present(
    _: Driver,
    gpus: u32,
    cpu: sys::ze_bool_t,
    tiles: u32,
    peer_access: sys::ze_bool_t,
) -> ZeResult {
    let read = |name| match name {
        layout::DEVICES => Some(format!("{gpus}{}", if cpu == 0 { "" } else { "+cpu" }).into()),
        layout::TILES => Some(tiles.to_string().into()),
        layout::PEER_ACCESS => Some(u32::from(peer_access != 0).to_string().into()),
        _ => env::var_os(name),
    };
    // The program has set no variable but the mask.
    let refused = |error: InvalidVariable| {
        let of = |what, count, most| {
            format!("the number of {what}, {count}, is not a number from 1 to {most}")
        };
        let text = match error.name {
            layout::DEVICES => of("GPUs", gpus, layout::MOST_DEVICES),
            layout::TILES => of("tiles", tiles, layout::MOST_TILES),
            _ => error.to_string(),
        };
        described(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT, text)
    };
    let wanted = Layout::of_variables(read).map_err(refused)?;
    let presented = &DEVICES.get_or_make(|| Devices::new(&wanted)).layout;
    if *presented == wanted {
        return Ok(());
    }
    Err(described(
        sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE,
        "the devices have been listed already",
    ))
}

/// The handles of the devices of `zeDeviceGet`, in their order.
pub fn listed() -> Vec<sys::ze_device_handle_t> {
    devices().handles(&devices().listed)
}

/// The GPUs and their sub-devices.
pub fn gpus() -> Vec<&'static Device> {
    let is_gpu = |device: &&Device| device.type_ == sys::ZE_DEVICE_TYPE_GPU;
    devices().all.iter().filter(is_gpu).collect()
}

/// The device or sub-device with this UUID.
pub fn with_uuid(uuid: [u8; 16]) -> Option<&'static Device> {
    devices().all.iter().find(|device| device.uuid() == uuid)
}

/// The device that `handle` names.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_NULL_HANDLE` for null, `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a handle of anything else.
pub fn find(handle: sys::ze_device_handle_t) -> ZeResult<&'static Device> {
    let number = handle::permanent_number(Kind::Device, handle)?;
    devices()
        .all
        .get(number as usize)
        .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

impl Argument<sys::ze_device_handle_t> for &'static Device {
    unsafe fn check(raw: sys::ze_device_handle_t) -> ZeResult<Self> {
        find(raw)
    }
}

/// The devices that a caller chooses. None are kept: all can use what is made for some.
pub struct Chosen;

impl Argument<(u32, *mut sys::ze_device_handle_t)> for Chosen {
    unsafe fn check((count, raw): (u32, *mut sys::ze_device_handle_t)) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the array.
        let handles = unsafe { input_array(raw, count, sys::ZE_RESULT_ERROR_INVALID_SIZE) }?;
        handles
            .iter()
            .try_for_each(|handle| find(*handle).map(drop))?;
        Ok(Self)
    }
}
