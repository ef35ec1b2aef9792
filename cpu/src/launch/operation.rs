//! The operations of launches: of one, and of several that are executed one after another.

use std::any::Any;
use std::sync::Arc;

use super::Launch;
use super::native::enqueue;
use crate::abi::result::ZeResult;
use crate::check::{self, Uses};
use crate::engine::{Enqueued, Kind, Operation, Pins};
use crate::memory::{Pin, Span};
use crate::opencl::{self, Queue};

/// Pins of the memory of pointers, and of any memory for kernels that access it through others.
fn pins(memory: &[Span], is_indirect: bool) -> ZeResult<Pins> {
    let any = is_indirect.then(|| Ok(Pin::any()));
    let pins = memory.iter().filter_map(|span| span.pin().transpose());
    pins.chain(any).collect()
}

impl Operation for Launch {
    fn kind(&self) -> Kind {
        if self.is_empty() {
            Kind::Marker
        } else {
            Kind::Native
        }
    }

    fn pin(&self) -> ZeResult<Pins> {
        pins(&self.memory, self.is_indirect)
    }

    fn uses(&self) -> Uses {
        let name = self.source.upgrade();
        let name = name.map_or_else(|| "a kernel".to_owned(), |it| it.info.name.clone());
        Uses {
            what: format!("the kernel {name}"),
            pointers: self.memory.iter().map(Span::address).collect(),
            ..Uses::default()
        }
    }

    fn joined_with(&self, next: &[Arc<dyn Operation>]) -> Option<Arc<dyn Operation>> {
        let sequence = Sequence::new(self, next)?;
        Some(Arc::new(sequence))
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        enqueue(
            queue,
            [|queue: &Queue| {
                check::kernel_accesses(self.memory.iter().map(Span::address));
                self.enqueue_to(queue)
            }],
        )
    }
}

/// Launches, each with a kernel object that has its arguments, and their memory, of which each place is pinned once.
pub struct Sequence {
    launches: Vec<(Launch, opencl::Kernel)>,
    memory: Vec<Span>,
    is_indirect: bool,
}

impl Sequence {
    /// `first` and then `next`, if they are launches, too, and OpenCL makes the kernel objects.
    pub fn new(first: &Launch, next: &[Arc<dyn Operation>]) -> Option<Self> {
        let next = next.iter().map(|operation| {
            let operation: &dyn Any = &**operation;
            operation.downcast_ref::<Launch>()
        });
        let launches = [Some(first)].into_iter().chain(next);
        let launches: Vec<Launch> = launches.map(|it| it.cloned()).collect::<Option<_>>()?;
        let kernels: Vec<_> = launches
            .iter()
            .map(Launch::prepared)
            .collect::<Option<_>>()?;
        let mut memory = Vec::<Span>::new();
        for span in launches.iter().flat_map(|launch| &launch.memory) {
            if !memory.iter().any(|known| known.is_same(span)) {
                memory.push(span.clone());
            }
        }
        Some(Self {
            memory,
            is_indirect: launches.iter().any(|launch| launch.is_indirect),
            launches: launches.into_iter().zip(kernels).collect(),
        })
    }
}

impl Operation for Sequence {
    fn kind(&self) -> Kind {
        Kind::Native
    }

    fn pin(&self) -> ZeResult<Pins> {
        pins(&self.memory, self.is_indirect)
    }

    fn uses(&self) -> Uses {
        Uses {
            what: format!("a sequence of {} kernels", self.launches.len()),
            pointers: self.memory.iter().map(Span::address).collect(),
            ..Uses::default()
        }
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        let launches = self.launches.iter();
        enqueue(
            queue,
            launches.map(|(launch, kernel)| {
                |queue: &Queue| launch.enqueue_as(kernel, &[], queue).map(Some)
            }),
        )
    }
}
