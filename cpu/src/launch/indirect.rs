//! Launches whose group counts are in memory that earlier commands may write.

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::Launch;
use super::append::{Groups, dimensions};
use super::native::enqueue;
use crate::abi::result::{ZeResult, ensure};
use crate::check::{DeviceCode, Uses};
use crate::command_list::{Events, KernelList};
use crate::engine::{Enqueued, Kind, Operation, Order, Pins};
use crate::kernel::Kernel;
use crate::memory::Span;
use crate::opencl::{self, Queue};

/// A launch that reads its group counts at execution.
struct Launched {
    launch: Launch,
    groups: Span,
}

impl Launched {
    fn new(kernel: &Arc<Kernel>, groups: *const Groups) -> ZeResult<Self> {
        Ok(Self {
            launch: Launch::capture(kernel, [1; 3])?,
            groups: Span::new(groups as usize, size_of::<Groups>())?,
        })
    }

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

/// The indirect launches of one command.
struct Indirect {
    launches: Vec<Launched>,
    /// How many of them run; all without it.
    count: Option<Span>,
}

impl Indirect {
    /// How many launches run.
    fn count(&self) -> usize {
        let _device_code = DeviceCode::begin();
        // SAFETY: the span was checked when it was created, and its pin keeps it alive.
        let read = |count: &Span| unsafe { (count.address() as *const u32).read_unaligned() };
        let count = self.count.as_ref().map(read);
        count.map_or(self.launches.len(), |count| count as usize)
    }
}

impl Operation for Indirect {
    fn kind(&self) -> Kind {
        Kind::NativeDeferred
    }

    fn pin(&self) -> ZeResult<Pins> {
        let mut pins = Pins::new();
        if let Some(count) = &self.count {
            pins.extend(count.pin()?);
        }
        for it in &self.launches {
            pins.extend(it.groups.pin()?);
            pins.extend(it.launch.pin()?);
        }
        Ok(pins)
    }

    fn uses(&self) -> Uses {
        // The group counts are an array.
        let groups = self.launches.first().zip(self.launches.last());
        let groups = groups.map(|(it, last)| it.groups.range().start..last.groups.range().end);
        let mut reads: SmallVec<[_; 1]> = groups.into_iter().collect();
        reads.extend(self.count.as_ref().map(Span::range));
        reads.sort_unstable_by_key(|range| range.start);
        let launches = self.launches.iter().map(|it| it.launch.uses());
        let what = match (&self.count, self.launches.first()) {
            (None, Some(it)) => it.launch.uses().what,
            _ => format!("a launch of up to {} kernels", self.launches.len()),
        };
        Uses {
            what,
            reads,
            pointers: launches.flat_map(|it| it.pointers).collect(),
            ..Uses::default()
        }
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        let launches = self.launches.iter().take(self.count());
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
    let operation = Indirect {
        launches: vec![Launched::new(&kernel, groups)?],
        count: None,
    };
    events.append(&list, operation, Order::Unordered)
}

/// `zeCommandListAppendLaunchMultipleKernelsIndirect`.
pub fn append_multiple_indirect(
    KernelList(list): KernelList,
    kernels: Vec<Arc<Kernel>>,
    count: *const u32,
    groups: *const Groups,
    events: Events,
) -> ZeResult {
    ensure(!groups.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    let launches = (0..).zip(&kernels);
    let launches =
        launches.map(|(index, kernel)| Launched::new(kernel, groups.wrapping_add(index)));
    let launches = launches.collect::<ZeResult<_>>()?;
    let operation = Indirect {
        launches,
        count: Some(Span::new(count as usize, size_of::<u32>())?),
    };
    events.append(&list, operation, Order::Unordered)
}
