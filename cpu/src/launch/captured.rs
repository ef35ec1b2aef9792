//! A launch, with the kernel's state captured at the append.

use std::sync::{Arc, Weak};

use level_zero_sys as sys;
use smallvec::SmallVec;

use crate::abi::result::{ZeResult, described, ensure};
use crate::kernel::{Arguments, Kernel};
use crate::memory::Span;
use crate::opencl::{self, Queue, Range, Value};
use crate::system::stack;

/// A kernel with its arguments and its range.
#[derive(Clone)]
pub struct Launch {
    kernel: Arc<opencl::Kernel>,
    /// The handle's object, while it is not destroyed.
    pub(super) source: Weak<Kernel>,
    pub(super) arguments: Arc<Arguments>,
    pub(super) range: Range,
    /// The memory of its pointers and images. Memory that it accesses through other pointers is unknown.
    pub(super) memory: SmallVec<[Span; 4]>,
    /// Whether it accesses such memory, which the program has to say.
    pub(super) is_indirect: bool,
    /// The bytes that it puts on the stack of a thread that executes it.
    stack_size: usize,
    /// The bytes of the device's local memory that its work-groups do not need.
    spare_local_memory: u64,
}

impl Launch {
    /// Captures `kernel` as it is set up now, for so many groups.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when an argument has not been set or the range ends beyond 2^64;
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY` when the device lacks local memory.
    pub fn capture(kernel: &Arc<Kernel>, groups: [u32; 3]) -> ZeResult<Self> {
        let (arguments, group, offset) = kernel.launch_state();
        if let Err(index) = arguments.values(0) {
            let name = &kernel.info.name;
            let text = format_args!("argument {index} of the kernel {name} has not been set");
            return Err(described(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT, text));
        }
        let group = group.map(|size| size as usize);
        Self::new(kernel, arguments, range(groups, group, offset)?)
    }

    /// A launch of `kernel` over a range. An argument without a value is an error when it is executed.
    ///
    /// # Errors
    /// Those of [`Span::new`] and [`Kernel::check_local_memory`].
    pub(super) fn new(
        kernel: &Arc<Kernel>,
        arguments: Arc<Arguments>,
        range: Range,
    ) -> ZeResult<Self> {
        let spare_local_memory = kernel.check_local_memory(&arguments)?;
        Ok(Self {
            kernel: Arc::clone(&kernel.compiled),
            source: Arc::downgrade(kernel),
            memory: arguments.memory()?,
            is_indirect: kernel.is_indirect(),
            stack_size: kernel.stack_size(range.group),
            spare_local_memory,
            arguments,
            range,
        })
    }

    /// The same launch with another number of groups.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the range ends beyond 2^64.
    pub fn with_groups(&self, groups: [u32; 3]) -> ZeResult<Self> {
        let Range { offset, group, .. } = self.range;
        Ok(Self {
            range: range(groups, group, offset)?,
            ..self.clone()
        })
    }

    /// The same launch with other arguments and another range. Its indirect access is that at its append.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and [`source`](Self::source).
    pub(super) fn changed(&self, arguments: Arc<Arguments>, range: Range) -> ZeResult<Self> {
        let is_indirect = self.is_indirect;
        let changed = Self::new(&self.source()?, arguments, range)?;
        Ok(Self {
            is_indirect,
            ..changed
        })
    }

    /// The kernel of the handle.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when that has been destroyed.
    pub(super) fn source(&self) -> ZeResult<Arc<Kernel>> {
        let source = self.source.upgrade();
        source.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }
}

/// The range of so many groups.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when it ends beyond 2^64.
pub(super) fn range(groups: [u32; 3], group: [usize; 3], offset: [usize; 3]) -> ZeResult<Range> {
    let mut items = [0; 3];
    for (((items, groups), group), offset) in items.iter_mut().zip(groups).zip(group).zip(offset) {
        let total = (groups as usize).checked_mul(group);
        let end = total.and_then(|total| total.checked_add(offset));
        ensure(end.is_some(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        *items = total.unwrap_or(0);
    }
    Ok(Range {
        offset,
        items,
        group,
    })
}

impl Launch {
    /// Enqueues it to OpenCL, which does not accept a launch without work-items.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNKNOWN` when OpenCL refuses it.
    pub(super) fn enqueue_to(&self, queue: &Queue) -> ZeResult<Option<opencl::Event>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.enqueue_as(&self.kernel, &self.values()?, queue)
            .map(Some)
    }

    /// A kernel object that has its arguments.
    pub(super) fn prepared(&self) -> Option<opencl::Kernel> {
        self.kernel.with_values(&self.values().ok()?).ok()
    }

    /// Enqueues it as a launch of `kernel`, with those arguments that the kernel does not have yet.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNKNOWN` when OpenCL refuses it.
    pub(super) fn enqueue_as(
        &self,
        kernel: &opencl::Kernel,
        values: &[Value<'_>],
        queue: &Queue,
    ) -> ZeResult<opencl::Event> {
        stack::reserve(self.stack_size);
        // SAFETY: the command's pins keep the memory of the arguments alive; the caller vouches for other memory.
        let event = unsafe { kernel.enqueue(queue, &self.range, values) };
        event.map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN)
    }

    /// The values of its arguments.
    fn values(&self) -> ZeResult<SmallVec<[Value<'_>; 16]>> {
        let values = self.arguments.values(self.spare_local_memory);
        values.map_err(|_| sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }

    /// Whether it has no work-items.
    pub(super) fn is_empty(&self) -> bool {
        self.range.items.contains(&0)
    }
}
