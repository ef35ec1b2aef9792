//! The vertices of a fabric: each GPU is one, and each of its tiles a sub-vertex, as on Intel's driver. No edge connects them.
//!
//! The handle of a vertex is that of its device, and a call that takes the one finds the other by it.

use level_zero_sys as sys;

use super::list::{self, Device};
use crate::abi::entry::{Argument, Out, Room};
use crate::abi::result::ZeResult;
use crate::driver::Driver;

/// The versions of the headers spell the name of this type differently.
const SUB_DEVICE: sys::ze_fabric_vertex_exp_type_t = sys::_ze_fabric_vertex_exp_type_t(2);

/// A vertex, by its device.
pub struct Vertex(&'static Device);

impl Argument<sys::ze_fabric_vertex_handle_t> for Vertex {
    unsafe fn check(raw: sys::ze_fabric_vertex_handle_t) -> ZeResult<Self> {
        list::find(raw.cast()).map(Self)
    }
}

/// `zeFabricVertexGetExp`.
pub fn vertices(_: Driver, all: Room<'_, sys::ze_fabric_vertex_handle_t>) -> ZeResult {
    all.fill(&handles(list::listed()))
}

/// `zeFabricVertexGetSubVerticesExp`.
pub fn sub_vertices(of: Vertex, all: Room<'_, sys::ze_fabric_vertex_handle_t>) -> ZeResult {
    all.fill(&handles(of.0.sub_devices()))
}

fn handles(devices: Vec<sys::ze_device_handle_t>) -> Vec<sys::ze_fabric_vertex_handle_t> {
    devices.into_iter().map(<*mut _>::cast).collect()
}

/// `zeDeviceGetFabricVertexExp`.
pub fn of_device(device: &'static Device, vertex: &mut sys::ze_fabric_vertex_handle_t) -> ZeResult {
    *vertex = device.handle().cast();
    Ok(())
}

/// `zeFabricVertexGetDeviceExp`.
pub fn device(vertex: Vertex, device: &mut sys::ze_device_handle_t) -> ZeResult {
    *device = vertex.0.handle();
    Ok(())
}

/// `zeFabricVertexGetPropertiesExp`. The address is that of the device.
pub fn properties(
    Vertex(device): Vertex,
    mut properties: Out<'_, sys::ze_fabric_vertex_exp_properties_t>,
) -> ZeResult {
    properties.uuid.id = device.uuid();
    properties.type_ = if device.root().is_some() {
        SUB_DEVICE
    } else {
        sys::ZE_FABRIC_VERTEX_EXP_TYPE_DEVICE
    };
    properties.remote = 0;
    let address = device.address();
    properties.address = sys::ze_fabric_vertex_pci_exp_address_t {
        domain: address.domain,
        bus: address.bus,
        device: address.device,
        function: address.function,
    };
    Ok(())
}

/// `zeFabricEdgeGetExp`: no edge.
pub fn edges(_: Vertex, _: Vertex, all: Room<'_, sys::ze_fabric_edge_handle_t>) -> ZeResult {
    all.fill(&[])
}
