//! Samplers: how kernels read between and outside of the pixels of an image.

use opencl_sys as cl;
use opencl_sys::{cl_addressing_mode, cl_filter_mode, cl_sampler};

use super::device::checked;
use super::quiesce::Call;
use super::{Error, Runtime};

/// How pixels outside of an image are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Undefined values.
    None,
    /// The image again.
    Repeat,
    /// The nearest pixel.
    Edge,
    /// The border's colour.
    Border,
    /// The image mirrored.
    Mirror,
}

/// How places between pixels are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// The weighted mean of the nearest pixels.
    Linear,
}

/// A sampler.
pub struct Sampler {
    runtime: &'static Runtime,
    raw: cl_sampler,
}

// SAFETY: a sampler is immutable, and used as the value of an argument only, which the kernel's lock guards.
unsafe impl Send for Sampler {}
// SAFETY: as above.
unsafe impl Sync for Sampler {}

impl Sampler {
    /// A sampler for coordinates from 0 to 1 (`normalized`), or to the number of pixels.
    ///
    /// # Errors
    /// When the runtime refuses the combination.
    pub fn new(
        runtime: &'static Runtime,
        addressing: Addressing,
        filter: Filter,
        normalized: bool,
    ) -> Result<Self, Error> {
        let addressing: cl_addressing_mode = match addressing {
            Addressing::None => cl::CL_ADDRESS_NONE,
            Addressing::Repeat => cl::CL_ADDRESS_REPEAT,
            Addressing::Edge => cl::CL_ADDRESS_CLAMP_TO_EDGE,
            Addressing::Border => cl::CL_ADDRESS_CLAMP,
            Addressing::Mirror => cl::CL_ADDRESS_MIRRORED_REPEAT,
        };
        let filter: cl_filter_mode = match filter {
            Filter::Nearest => cl::CL_FILTER_NEAREST,
            Filter::Linear => cl::CL_FILTER_LINEAR,
        };
        let properties = [
            u64::from(cl::CL_SAMPLER_NORMALIZED_COORDS),
            u64::from(normalized),
            u64::from(cl::CL_SAMPLER_ADDRESSING_MODE),
            u64::from(addressing),
            u64::from(cl::CL_SAMPLER_FILTER_MODE),
            u64::from(filter),
            0,
        ];
        let _call = Call::begin()?;
        let mut code = 0;
        // SAFETY: the properties end in 0, and the status is written to our place.
        let raw = unsafe {
            let create = runtime.api.clCreateSamplerWithProperties;
            create(runtime.context, properties.as_ptr(), &raw mut code)
        };
        let raw = checked("clCreateSamplerWithProperties", raw, code)?;
        Ok(Self { runtime, raw })
    }

    /// The bytes of an argument that is this sampler.
    pub(super) fn handle(&self) -> [u8; size_of::<usize>()] {
        (self.raw as usize).to_ne_bytes()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let Ok(_call) = Call::begin() else { return };
        // SAFETY: created here, released once; a launch in flight holds it by OpenCL's own count.
        unsafe { (self.runtime.api.clReleaseSampler)(self.raw) };
    }
}
