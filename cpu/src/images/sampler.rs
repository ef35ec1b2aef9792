//! Samplers.

use std::sync::Arc;

use level_zero_sys as sys;
use opencl_sys as cl;

use super::create::runtime;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, described, ensure};
use crate::context::Context;
use crate::device::Device;
use crate::handle::{hand_out, object};
use crate::opencl::Sampler;

object!(Sampler, sys::_ze_sampler_handle_t, Sampler);

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
        sys::ZE_SAMPLER_ADDRESS_MODE_NONE => cl::CL_ADDRESS_NONE,
        // OpenCL defines repetition for normalized coordinates only, and its runtime ends the process otherwise.
        sys::ZE_SAMPLER_ADDRESS_MODE_REPEAT | sys::ZE_SAMPLER_ADDRESS_MODE_MIRROR
            if !normalized =>
        {
            cl::CL_ADDRESS_CLAMP_TO_EDGE
        }
        sys::ZE_SAMPLER_ADDRESS_MODE_REPEAT => cl::CL_ADDRESS_REPEAT,
        sys::ZE_SAMPLER_ADDRESS_MODE_CLAMP => cl::CL_ADDRESS_CLAMP_TO_EDGE,
        sys::ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER => cl::CL_ADDRESS_CLAMP,
        sys::ZE_SAMPLER_ADDRESS_MODE_MIRROR => cl::CL_ADDRESS_MIRRORED_REPEAT,
        _ => return Err(invalid),
    };
    let filter = match desc.filterMode {
        sys::ZE_SAMPLER_FILTER_MODE_NEAREST => cl::CL_FILTER_NEAREST,
        sys::ZE_SAMPLER_FILTER_MODE_LINEAR => cl::CL_FILTER_LINEAR,
        _ => return Err(invalid),
    };
    let made = Sampler::new(runtime()?, addressing, filter, normalized);
    let refused = |error| described(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, error);
    hand_out(made.map_err(refused)?, place)
}
