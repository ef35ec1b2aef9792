//! Argument values, checked against the module's interface.

use std::ffi::c_void;
use std::sync::Arc;

use ::spirv::Dim;
use level_zero_sys as sys;
use smallvec::SmallVec;

use crate::abi::result::{ZeResult, described, ensure};
use crate::abi::strictness::is_strict;
use crate::handle::{Object, resolve};
use crate::images::Image;
use crate::memory::{Pin, Span};
use crate::opencl::{ImageKind, Sampler, Value};
use crate::spirv::{self, Argument};

/// GPUs grant local memory in units of 1 KiB and drop accesses beyond it, so kernels with small overflows go unnoticed there. Here
/// such an access would destroy the process's memory: each argument gets the rest of its last unit and one more.
const LOCAL_MARGIN: usize = 1024;

/// One value that has been set.
#[derive(Clone)]
pub(super) enum Stored {
    Pointer(usize),
    Bytes(SmallVec<[u8; 16]>),
    Local(usize),
    Image(Arc<Image>),
    Sampler(Arc<Sampler>),
}

/// The values of all arguments that have been set.
#[derive(Clone, Default)]
pub struct Arguments(pub(super) Vec<Option<Stored>>);

impl Arguments {
    /// The values for a launch, or the index of the first argument that has none. Local memory of `spare` bytes at most follows
    /// what was set (`LOCAL_MARGIN`).
    pub fn values(&self, mut spare: u64) -> Result<SmallVec<[Value<'_>; 16]>, usize> {
        let values = self
            .0
            .iter()
            .enumerate()
            .map(|(index, stored)| match stored {
                Some(Stored::Pointer(address)) => Ok(Value::Pointer(*address as *const c_void)),
                Some(Stored::Bytes(bytes)) => Ok(Value::Bytes(bytes)),
                Some(Stored::Local(size)) => {
                    let margin = size.wrapping_neg() % LOCAL_MARGIN + LOCAL_MARGIN;
                    let margin = spare.min(margin as u64);
                    spare -= margin;
                    Ok(Value::Local(size + margin as usize))
                }
                Some(Stored::Image(image)) => Ok(Value::Image(&image.opencl)),
                Some(Stored::Sampler(sampler)) => Ok(Value::Sampler(sampler)),
                None => Err(index),
            });
        values.collect()
    }

    /// The local memory of each work-group, in bytes.
    pub fn local_memory(&self) -> u64 {
        let sizes = self.0.iter().map(|stored| match stored {
            Some(Stored::Local(size)) => *size as u64,
            _ => 0,
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// The memory that the values refer to. Of a pointer that is not null, only the start is known.
    ///
    /// # Errors
    /// Those of [`Span::new`].
    pub fn memory(&self) -> ZeResult<SmallVec<[Span; 4]>> {
        let spans = self.0.iter().filter_map(|stored| match stored {
            Some(Stored::Pointer(address)) if *address != 0 => Some(Span::new(*address, 0)),
            Some(Stored::Image(image)) => Some(Ok(image.pixels.clone())),
            _ => None,
        });
        let mut spans = spans.collect::<ZeResult<SmallVec<[Span; 4]>>>()?;
        Span::note_ends(&mut spans);
        Ok(spans)
    }

    /// The allocations that the values refer to, each with the number of its argument.
    pub fn allocations(&self) -> Vec<(u32, Pin)> {
        let found = (0..).zip(&self.0).filter_map(|(index, stored)| {
            let span = match stored {
                Some(Stored::Pointer(address)) => Span::new(*address, 0).ok()?,
                Some(Stored::Image(image)) => image.pixels.clone(),
                _ => return None,
            };
            Some((index, span.pin().ok()??))
        });
        found
            .filter(|(_, pin)| pin.allocation().is_some())
            .collect()
    }

    /// Sets one argument of `kernel`; without a size, the module determines it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX` and `..._SIZE`.
    ///
    /// # Safety
    /// `value` must be null or refer to `size` bytes, except for local memory, where it is ignored.
    pub unsafe fn set(
        &mut self,
        kernel: &spirv::Kernel,
        index: usize,
        size: Option<usize>,
        value: *const c_void,
    ) -> ZeResult {
        let argument = kernel.arguments.get(index);
        let argument = *argument.ok_or(sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX)?;
        let expect = |expected: usize| {
            ensure(
                size.is_none_or(|size| size == expected),
                sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE,
            )
        };
        let stored = match argument {
            Argument::Pointer => {
                expect(size_of::<usize>())?;
                // SAFETY: the caller vouches for as many bytes as an address has, aligned or not.
                let address =
                    (!value.is_null()).then(|| unsafe { value.cast::<usize>().read_unaligned() });
                Stored::Pointer(address.unwrap_or(0))
            }
            // An empty accessor has size 0, which OpenCL does not accept.
            Argument::Local => {
                let size = size.ok_or(sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE)?;
                Stored::Local(size.max(1))
            }
            Argument::Value(known) => {
                let length = known
                    .or(size)
                    .ok_or(sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE)?;
                // Intel's driver takes the first bytes of a longer value and extends a shorter one by zeros; oneMKL passes
                // small numbers in 8 bytes.
                if is_strict() {
                    expect(length)?;
                }
                // SAFETY: the caller vouches for `size` bytes, or for as many as the argument has.
                Stored::Bytes(unsafe { bytes(value, length, size.unwrap_or(length))? })
            }
            Argument::Image(expected) => {
                expect(size_of::<sys::ze_image_handle_t>())?;
                // SAFETY: the caller vouches for a handle.
                let image = unsafe { object::<Image>(value) }?;
                if kind(expected) != Some(image.layout.kind) {
                    let name = &kernel.name;
                    return Err(described(
                        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
                        format_args!(
                            "argument {index} of the kernel {name} is another type of image"
                        ),
                    ));
                }
                Stored::Image(image)
            }
            Argument::Sampler => {
                expect(size_of::<sys::ze_sampler_handle_t>())?;
                // SAFETY: the caller vouches for a handle.
                Stored::Sampler(unsafe { object(value) }?)
            }
            Argument::Opaque => return Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
        };
        self.0[index] = Some(stored);
        Ok(())
    }
}

/// The object of the handle that `value` refers to.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for null, and for what is no handle of a live object.
///
/// # Safety
/// `value` must be null or refer to a handle.
unsafe fn object<T: Object>(value: *const c_void) -> ZeResult<Arc<T>> {
    ensure(!value.is_null(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    // SAFETY: the caller vouches for a handle, aligned or not.
    let handle = unsafe { value.cast::<*mut T::Opaque>().read_unaligned() };
    resolve::<T>(handle).map_err(|_| sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// The kind of image that a module's type is.
fn kind(image: spirv::Image) -> Option<ImageKind> {
    Some(match (image.dimensions, image.arrayed) {
        (Dim::Dim1D, false) => ImageKind::Line,
        (Dim::Dim1D, true) => ImageKind::Lines,
        (Dim::Dim2D, false) => ImageKind::Plane,
        (Dim::Dim2D, true) => ImageKind::Planes,
        (Dim::Dim3D, false) => ImageKind::Volume,
        (Dim::DimBuffer, false) => ImageKind::Buffer,
        _ => return None,
    })
}

/// A value of `length` bytes from one of `given` bytes: cut, or extended by zeros. Null means zeros, which is how SYCL passes a
/// number 0 of 8 bytes.
///
/// # Safety
/// `value` must be null or refer to `given` bytes.
unsafe fn bytes(value: *const c_void, length: usize, given: usize) -> ZeResult<SmallVec<[u8; 16]>> {
    /// More than any device takes, so that a size alone allocates nothing.
    const MOST: usize = 1 << 20;
    ensure(
        length <= MOST,
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE,
    )?;
    let mut bytes = SmallVec::new();
    if !value.is_null() {
        // SAFETY: the caller vouches for `given` bytes.
        let value = unsafe { std::slice::from_raw_parts(value.cast(), given.min(length)) };
        bytes.extend_from_slice(value);
    }
    bytes.resize(length, 0);
    Ok(bytes)
}
