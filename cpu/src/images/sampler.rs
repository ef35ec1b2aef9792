//! Samplers.

use std::sync::Arc;

use level_zero_sys as sys;

use super::create::runtime;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, describe, ensure};
use crate::context::Context;
use crate::device::Device;
use crate::handle::{object, register, retire};
use crate::opencl::{self, Addressing, Filter};

object!(Sampler, sys::_ze_sampler_handle_t, Sampler);

/// A sampler. Kernels that have it as an argument, and recorded launches, keep it alive.
pub struct Sampler(opencl::Sampler);

impl Sampler {
    /// The sampler that kernels get as their argument.
    pub fn opencl(&self) -> &opencl::Sampler {
        &self.0
    }
}

/// `zeSamplerCreate`.
pub fn create(
    _: Arc<Context>,
    _: &'static Device,
    desc: In<'_, sys::ze_sampler_desc_t>,
    place: &mut sys::ze_sampler_handle_t,
) -> ZeResult {
    ensure(
        desc.pNext.is_null(),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION,
    )?;
    let normalized = desc.isNormalized != 0;
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ENUMERATION;
    let addressing = match desc.addressMode {
        sys::ZE_SAMPLER_ADDRESS_MODE_NONE => Addressing::None,
        // OpenCL defines repetition for normalized coordinates only, and its runtime ends the process otherwise.
        sys::ZE_SAMPLER_ADDRESS_MODE_REPEAT | sys::ZE_SAMPLER_ADDRESS_MODE_MIRROR
            if !normalized =>
        {
            Addressing::Edge
        }
        sys::ZE_SAMPLER_ADDRESS_MODE_REPEAT => Addressing::Repeat,
        sys::ZE_SAMPLER_ADDRESS_MODE_CLAMP => Addressing::Edge,
        sys::ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER => Addressing::Border,
        sys::ZE_SAMPLER_ADDRESS_MODE_MIRROR => Addressing::Mirror,
        _ => return Err(invalid),
    };
    let filter = match desc.filterMode {
        sys::ZE_SAMPLER_FILTER_MODE_NEAREST => Filter::Nearest,
        sys::ZE_SAMPLER_FILTER_MODE_LINEAR => Filter::Linear,
        _ => return Err(invalid),
    };
    let made = opencl::Sampler::new(runtime()?, addressing, filter, normalized);
    let made = made.map_err(|error| {
        describe(&error.to_string());
        sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    })?;
    *place = register(Arc::new(Sampler(made)))?;
    Ok(())
}

/// `zeSamplerDestroy`; kernels that have it as an argument are not affected.
pub fn destroy(sampler: sys::ze_sampler_handle_t) -> ZeResult {
    retire::<Sampler>(sampler).map(drop)
}
