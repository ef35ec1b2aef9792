//! Samplers: how kernels read between and outside of the pixels of an image.

use opencl_sys as cl;
use opencl_sys::{cl_addressing_mode, cl_filter_mode, cl_sampler};

use super::owned::Owned;
use super::quiesce::Call;
use super::{Error, Runtime};

/// A sampler.
pub struct Sampler(Owned<cl_sampler>);

impl Sampler {
    /// A sampler for coordinates from 0 to 1 (`normalized`), or to the number of pixels, with OpenCL's modes for what is outside of
    /// an image (`addressing`) and between pixels (`filter`).
    ///
    /// # Errors
    /// When the runtime refuses the combination.
    pub fn new(
        runtime: &'static Runtime,
        addressing: cl_addressing_mode,
        filter: cl_filter_mode,
        normalized: bool,
    ) -> Result<Self, Error> {
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
        // SAFETY: it was created just now.
        let made = unsafe {
            Owned::made(
                "clCreateSamplerWithProperties",
                raw,
                code,
                runtime.api.clReleaseSampler,
            )
        };
        made.map(Self)
    }

    /// The bytes of an argument that is this sampler.
    pub(super) fn handle(&self) -> [u8; size_of::<usize>()] {
        (self.0.raw as usize).to_ne_bytes()
    }
}
