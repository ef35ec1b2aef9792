//! Launches whose group counts are in memory that earlier commands may write.

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::{SmallVec, smallvec};

use super::Launch;
use super::append::{Groups, dimensions};
use super::native::enqueue;
use crate::abi::arguments::input_array;
use crate::abi::result::{ZeResult, ensure};
use crate::check::{DeviceCode, Uses};
use crate::command_list::{Events, KernelList};
use crate::engine::{Enqueued, Kind, Operation, Order, Pins};
use crate::handle::resolve;
use crate::kernel::Kernel;
use crate::memory::Span;
use crate::opencl::{self, Queue};

/// A launch that reads its group counts at execution.
struct Indirect {
    launch: Launch,
    groups: Span,
}

impl Indirect {
    /// Enqueues the launch with the group counts as they are now.
    fn enqueue_to(&self, queue: &Queue) -> ZeResult<Option<opencl::Event>> {
        let groups = self.groups.address() as *const Groups;
        let device_code = DeviceCode::begin();
        // SAFETY: the span was checked when it was created, and its pin keeps it alive.
        let groups = unsafe { groups.read_unaligned() };
        let launch = self.launch.with_groups(dimensions(&groups))?;
        drop(device_code);
        launch.enqueue_to(queue)
    }
}

impl Operation for Indirect {
    fn kind(&self) -> Kind {
        Kind::NativeDeferred
    }

    fn pin(&self) -> ZeResult<Pins> {
        let mut pins = self.launch.pin()?;
        pins.extend(self.groups.pin()?);
        Ok(pins)
    }

    fn uses(&self) -> Uses {
        Uses {
            reads: smallvec![self.groups.range()],
            ..self.launch.uses()
        }
    }

    fn run(&self, _part: usize) -> ZeResult {
        Ok(()) // OpenCL does.
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        enqueue(queue, [|queue: &Queue| self.enqueue_to(queue)])
    }
}

/// Indirect launches of one command, of which the first `count` run.
struct MultipleIndirect {
    launches: Vec<Indirect>,
    count: Span,
}

impl Operation for MultipleIndirect {
    fn kind(&self) -> Kind {
        Kind::NativeDeferred
    }

    fn pin(&self) -> ZeResult<Pins> {
        let mut pins = Pins::new();
        pins.extend(self.count.pin()?);
        for launch in &self.launches {
            pins.extend(launch.pin()?);
        }
        Ok(pins)
    }

    fn uses(&self) -> Uses {
        let launches = self.launches.iter().map(Indirect::uses);
        // The group counts are an array.
        let groups = self.launches.first().zip(self.launches.last());
        let groups = groups.map(|(it, last)| it.groups.range().start..last.groups.range().end);
        let mut reads: SmallVec<[_; 1]> = groups.into_iter().collect();
        reads.push(self.count.range());
        reads.sort_unstable_by_key(|range| range.start);
        Uses {
            what: format!("a launch of up to {} kernels", self.launches.len()),
            reads,
            pointers: launches.flat_map(|it| it.pointers).collect(),
            ..Uses::default()
        }
    }

    fn run(&self, _part: usize) -> ZeResult {
        Ok(()) // OpenCL does.
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        let count = self.count.address() as *const u32;
        let device_code = DeviceCode::begin();
        // SAFETY: the span was checked when it was created, and its pin keeps it alive.
        let count = unsafe { count.read_unaligned() } as usize;
        drop(device_code);
        let launches = self.launches.iter().take(count);
        enqueue(
            queue,
            launches.map(|launch| |queue: &Queue| launch.enqueue_to(queue)),
        )
    }
}

/// `zeCommandListAppendLaunchKernelIndirect`.
pub fn append_indirect(
    KernelList(list): KernelList,
    kernel: Arc<Kernel>,
    groups: *const Groups,
    events: Events,
) -> ZeResult {
    let operation = indirect(&kernel, groups)?;
    events.append(&list, operation, Order::Unordered)
}

/// `zeCommandListAppendLaunchMultipleKernelsIndirect`.
///
/// # Safety
/// `kernels` must be null or have `most` entries.
pub unsafe fn append_multiple_indirect(
    KernelList(list): KernelList,
    most: u32,
    kernels: *mut sys::ze_kernel_handle_t,
    count: *const u32,
    groups: *const Groups,
    events: Events,
) -> ZeResult {
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ensure(!kernels.is_null() && !groups.is_null(), null)?;
    // SAFETY: the caller vouches for the array.
    let kernels = unsafe { input_array(kernels.cast_const(), most, null)? };
    let launches = kernels
        .iter()
        .enumerate()
        .map(|(index, kernel)| indirect(&resolve::<Kernel>(*kernel)?, groups.wrapping_add(index)));
    let launches = launches.collect::<ZeResult<_>>()?;
    let operation = MultipleIndirect {
        launches,
        count: Span::new(count as usize, size_of::<u32>())?,
    };
    events.append(&list, operation, Order::Unordered)
}

fn indirect(kernel: &Arc<Kernel>, groups: *const Groups) -> ZeResult<Indirect> {
    let groups = Span::new(groups as usize, size_of::<Groups>())?;
    Ok(Indirect {
        launch: Launch::capture(kernel, [1; 3])?,
        groups,
    })
}
