//! DLPack import of arrays.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::adopt::{self, declared_kind};
use super::class::UsmArray;
use super::plan::{self, Asked, Plan};
use super::{dlpack_export, make};
use crate::dpctl::{self, Dpctl, SyclQueue};
use crate::errors::{Explain, OrRaise};
use crate::interpreter::{capsule_pointer, intern};
use crate::memory::{Owner, PyMemory, Terms, note_import_by_address, object};
use crate::parse::{self, BoolOrInt, dtype};
use crate::resolve::{
    self, ContextDevice, DlpackDevice, QueueBinding, default_binding, pointer_attributes,
};
use crate::shown::{class_name, naming};
use zeusm::dlpack::{Device, Form, Managed, Tensor, abi};
use zeusm::usm::{PointerAttributes, UsmKind, is_in_place};

/// Imports any object with `__dlpack__` as an array in USM: a view if its memory is USM, else a copy.
///
/// Memory of a SYCL device (kDLOneAPI) is imported in place. Host memory (kDLCPU) is imported in place if it is USM of the
/// default context, as is a NumPy view of a shared array; other host memory is copied to USM-device memory.
///
/// Parameters
/// ----------
/// x
///     An object with `__dlpack__` and `__dlpack_device__`: an array of dpnp, dpctl, NumPy or PyTorch, for instance.
/// device : optional
///     The device of the array, as for `empty`; by default the device of `x`.
/// copy : bool, optional
///     None: copy only if needed; False: never copy; True: always copy.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// BufferError
///     When `x` is on an unsupported device, has an unsupported type, describes memory outside its allocation, or `copy` is
///     False and a copy is needed.
/// TypeError
///     When `x` does not have the two methods, or returns no capsule.
/// ValueError
///     When its capsule has been consumed already.
///
/// Examples
/// --------
/// >>> import numpy, zeusm
/// >>> zeusm.from_dlpack(numpy.arange(4.0))[1:].copy_to_host()
/// array([1., 2., 3.])
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub(crate) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<BoolOrInt>,
) -> PyResult<UsmArray> {
    let (py, copy) = (x.py(), copy.map(|copy| copy.0));
    let binding = plan::device(device)?;
    if let Some(array) = adopt::own(x)? {
        array.item_for_peer().map_err(PyBufferError::new_err)?;
        let plan = Plan::of_usm(asked(binding, copy), &array);
        let plan = plan.explain(py, |error| {
            naming(error.value(py), |reason| {
                PyBufferError::new_err(reason.to_owned())
            })
        })?;
        return make::of_usm(py, &plan, array);
    }
    taken(x, &capsule(x, copy)?, binding, copy)
}

/// The array of a structure, whose ownership it takes, also if it cannot be imported.
///
/// # Safety
/// `structure` must be valid, and without another owner.
pub(super) unsafe fn imported(
    py: Python<'_>,
    structure: *mut abi::Versioned,
    binding: Option<Arc<QueueBinding>>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    // SAFETY: the caller guarantees the validity of the structure, and gives its ownership.
    let capsule = unsafe { dlpack_export::in_capsule(py, structure.cast(), Form::Versioned) }?;
    taken(&capsule, &capsule, binding, copy)
}

fn asked(binding: Option<Arc<QueueBinding>>, copy: Option<bool>) -> Asked {
    Asked {
        binding,
        copy,
        ..Asked::default()
    }
}

/// Takes the array out of the capsule of `x`.
fn taken(
    x: &Bound<'_, PyAny>,
    capsule: &Bound<'_, PyAny>,
    binding: Option<Arc<QueueBinding>>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let py = x.py();
    let is_fixed = copy == Some(false);
    let place = binding.as_ref().filter(|_| is_fixed);
    let offer = Offered::read(capsule, place)?;
    let tensor = &offer.tensor;
    if is_fixed && tensor.copied {
        return Err(PyBufferError::new_err(
            "the exporter made a copy, and copy is False",
        ));
    }
    let element = tensor.item.into();
    if !dtype::is_supported(&element) {
        return Err(PyBufferError::new_err(dtype::unsupported(&element)));
    }
    let array = match tensor.device {
        Device::OneApi(number) => usm_of_device(x, &offer, number)?,
        Device::Cpu => match usm_of_host(x, &offer)? {
            Some(array) => array,
            None => return copy_of_host(py, &offer, binding, copy),
        },
        Device::Other(_) => {
            return Err(PyBufferError::new_err(format!(
                "the tensor is on {}, which is neither a SYCL device nor the host",
                tensor.device
            )));
        }
    };
    // The exporter's copy suffices, unless it is read-only, as dpnp's of 0-d arrays is.
    let copy = copy.filter(|copy| !(*copy && tensor.copied && !tensor.read_only));
    make::of_usm(py, &Plan::of_usm(asked(binding, copy), &array)?, array)
}

/// Requests a versioned capsule whose data may be read at once. For a device that is neither the host nor a SYCL device, an
/// export to the host is requested.
fn capsule<'py>(x: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let (Some(export), Some(device)) = (
        x.getattr_opt(intern!(py, "__dlpack__"))?,
        x.getattr_opt(intern!(py, "__dlpack_device__"))?,
    ) else {
        return Err(PyTypeError::new_err(format!(
            "{} does not have __dlpack__ and __dlpack_device__",
            class_name(x)
        )));
    };
    let (kind, id) = parse::dlpack_device(&device.call0()?, "__dlpack_device__()")?;
    let newer = PyDict::new(py);
    newer.set_item("max_version", (abi::VERSION.major, abi::VERSION.minor))?;
    if copy == Some(false) {
        newer.set_item("copy", false)?;
    }
    let queue = match Device::from(abi::Device { kind, id }) {
        Device::OneApi(number) => {
            if copy == Some(true) {
                newer.set_item("copy", true)?;
            }
            Some(match own_queue(x)? {
                Some(queue) => queue,
                None => DlpackDevice::get(py, number)?.waiting(py)?,
            })
        }
        Device::Other(_) if copy != Some(false) => {
            newer.set_item("dl_device", (abi::CPU, 0))?;
            None
        }
        _ => None,
    };
    let capsule = requested(&export, &newer, queue.as_ref()).or_else(|error| {
        let may_copy = queue.is_some() && copy.is_none();
        // It may be in another context than its device's default one, from where it is exported as a copy only.
        if !may_copy || !error.is_instance_of::<PyBufferError>(py) {
            return Err(error);
        }
        newer.set_item("copy", true)?;
        requested(&export, &newer, queue.as_ref())
    })?;
    // It is the stream, or the exporter's own queue, of which the exporter may have taken no notice.
    if let Some(queue) = queue {
        SyclQueue::new(&queue)?.finish(py)?;
    }
    Ok(capsule)
}

/// Calls `__dlpack__` with the keywords that it accepts, which a `TypeError` tells. Some exporters do not accept a dpctl queue.
/// Those older than DLPack 1.0 accept the stream only, and never copy.
fn requested<'py>(
    export: &Bound<'py, PyAny>,
    newer: &Bound<'py, PyDict>,
    queue: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = export.py();
    let older = PyDict::new(py);
    let mut attempts = vec![newer.clone()];
    if let Some(queue) = queue {
        older.set_item("stream", queue)?;
        let all = newer.copy()?;
        all.update(older.as_mapping())?;
        attempts = vec![all, newer.clone(), older];
    }
    for keywords in &attempts {
        match export.call((), Some(keywords)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {}
            result => return result,
        }
    }
    export.call0()
}

/// The queue of the exporter's array, if it has the attribute `sycl_queue`, to pass as the stream. An exporter submits
/// nothing for its own queue; for another queue it submits a barrier, for which SYCL leaks a few bytes.
fn own_queue<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    match x.getattr_opt(intern!(py, "sycl_queue"))? {
        Some(queue) if dpctl::is_of(&queue, &Dpctl::get(py)?.queue)? => Ok(Some(queue)),
        _ => Ok(None),
    }
}

fn used_before() -> PyErr {
    PyValueError::new_err("the DLPack capsule was used before; a tensor can be taken once")
}

/// A tensor whose capsule is not consumed yet; after an error, its producer still owns it.
struct Offered<'py> {
    capsule: Bound<'py, PyAny>,
    form: Form,
    structure: *mut c_void,
    tensor: Tensor,
    /// The only place that the array may have, if it must not be copied.
    place: Option<Arc<QueueBinding>>,
}

impl<'py> Offered<'py> {
    fn read(capsule: &Bound<'py, PyAny>, place: Option<&Arc<QueueBinding>>) -> PyResult<Self> {
        for form in Form::ALL {
            if let Some(structure) = capsule_pointer(capsule.as_ptr(), form.name()) {
                // SAFETY: by DLPack's rules a capsule of this name holds a valid structure of this form.
                let tensor = unsafe { Managed::tensor(form, structure) }.or_raise()?;
                return Ok(Self {
                    capsule: capsule.clone(),
                    form,
                    structure,
                    tensor,
                    place: place.cloned(),
                });
            }
            // SAFETY: the interpreter is attached; the check takes any object.
            if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), form.used_name().as_ptr()) } != 0 {
                return Err(used_before());
            }
        }
        Err(naming(capsule, |other| {
            PyTypeError::new_err(format!(
                "__dlpack__ must return a capsule named dltensor_versioned or dltensor, not {other}"
            ))
        }))
    }

    /// Consumes the capsule, and takes the ownership of the structure.
    ///
    /// # Errors
    /// `ValueError` when code of the exporter that ran since `read` has given it to another consumer.
    fn consume(&self) -> PyResult<Managed> {
        if capsule_pointer(self.capsule.as_ptr(), self.form.name()) != Some(self.structure) {
            return Err(used_before());
        }
        // SAFETY: the name is static; the capsule has the structure under the other name, so no consumer owns it, and the new
        // name prevents other consumers from consuming it.
        unsafe {
            ffi::PyCapsule_SetName(self.capsule.as_ptr(), self.form.used_name().as_ptr());
            Ok(Managed::new(self.form, self.structure))
        }
    }

    /// The array in USM at the tensor's pointer.
    fn array(
        &self,
        py: Python<'_>,
        kind: UsmKind,
        binding: Arc<QueueBinding>,
    ) -> PyResult<UsmArray> {
        let tensor = &self.tensor;
        let at = binding.context_device();
        if !self
            .place
            .as_ref()
            .is_none_or(|place| plan::is_at(at, place))
        {
            return Err(PyBufferError::new_err(plan::needs_copy(kind, at)));
        }
        let extent = tensor.layout.extent();
        let (pointer, before) = if extent.is_empty() {
            (tensor.pointer, tensor.layout.byte_offset())
        } else {
            (
                tensor.pointer.wrapping_add_signed(extent.start),
                extent.start,
            )
        };
        let layout = tensor.layout.rebased(before).or_raise()?;
        let owner = Bound::new(py, ImportedTensor(self.consume()?))?;
        let owner = Owner::Object(owner.into_any().unbind());
        let memory = PyMemory::new(
            binding.into(),
            pointer,
            extent.len(),
            kind,
            Terms::new(tensor.read_only),
            owner,
        );
        UsmArray::new(&object(py, memory)?, tensor.item.into(), layout)
    }

    fn check_within(&self, allocation: &PointerAttributes) -> PyResult<()> {
        let tensor = &self.tensor;
        let checked = tensor
            .layout
            .check_within(tensor.pointer, allocation.addresses());
        checked.map_err(|error| PyBufferError::new_err(format!("{error}")))
    }
}

/// The owner of an imported DLPack tensor; the drop calls the tensor's deleter.
#[pyclass(name = "_ImportedTensor", module = "zeusm", frozen)]
struct ImportedTensor(#[allow(dead_code)] Managed);

/// The array on a SYCL device.
fn usm_of_device(x: &Bound<'_, PyAny>, offer: &Offered<'_>, number: i32) -> PyResult<UsmArray> {
    let py = x.py();
    let device = DlpackDevice::get(py, number)?;
    if offer.tensor.layout.elements() == 0 {
        let kind = declared_kind(x)?.unwrap_or_else(|| {
            let found = ContextDevice::of_pointer(&device.context, offer.tensor.pointer);
            found.map_or(UsmKind::Device, |(_, attributes)| attributes.kind)
        });
        return offer.array(py, kind, Arc::clone(&device.binding));
    }
    let found = match ContextDevice::of_pointer(&device.context, offer.tensor.pointer) {
        Err(error) if is_unknown(py, &error) => {
            // The array may be in the context of a peer's queue, where DLPack knows default contexts only.
            if let Some(peer) = resolve::of_jax(x)? {
                let (at, attributes) =
                    ContextDevice::of_pointer(&peer.context, offer.tensor.pointer)?;
                offer.check_within(&attributes)?;
                return offer.array(py, attributes.kind, peer.bind_at(py, &at)?);
            }
            Err(naming(error.value(py), |reason| {
                PyBufferError::new_err(format!(
                    "the tensor's data is not in the default context of device {number}: {reason}"
                ))
            }))
        }
        found => found,
    };
    let (context_device, attributes) = found?;
    offer.check_within(&attributes)?;
    if attributes.kind == UsmKind::Host {
        resolve::exchange_host_memory(py, device.binding.context_device())?;
    }
    // Host memory belongs to no device, so the tensor's is kept. dpctl's queue is on the root device; memory on a sub-device
    // needs a queue of its own.
    let is_on_root = |owner| owner == device.binding.context_device().device();
    let binding = if attributes.device.as_ref().is_none_or(is_on_root) {
        Arc::clone(&device.binding)
    } else {
        QueueBinding::new(context_device, None)
    };
    // The exporter may have more work on the queue of its array later.
    let own = own_queue(x)?.map(|queue| resolve::binding(&queue, "sycl_queue"));
    let own = own.transpose()?;
    let own = own.filter(|own| plan::is_at(binding.context_device(), own));
    offer.array(py, attributes.kind, own.unwrap_or(binding))
}

/// Whether the error says that the pointer is unknown, as opposed to a failure of the query.
fn is_unknown(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyValueError>(py)
}

/// The array in host memory, if that is USM of the default context.
fn usm_of_host(x: &Bound<'_, PyAny>, offer: &Offered<'_>) -> PyResult<Option<UsmArray>> {
    let py = x.py();
    let is_empty = offer.tensor.layout.elements() == 0;
    if is_empty && let Some(kind) = declared_kind(x)?.filter(|kind| kind.is_host_accessible()) {
        let binding = Arc::clone(default_binding(py)?);
        return offer.array(py, kind, binding).map(Some);
    }
    // The exporter of the program's own pages does not keep them USM.
    if offer.tensor.pointer == 0 || is_in_place(offer.tensor.pointer) {
        return Ok(None);
    }
    let (context_device, attributes) = match pointer_attributes(py, offer.tensor.pointer) {
        Ok(found) => found,
        Err(error) if is_unknown(py, &error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !is_empty {
        offer.check_within(&attributes)?;
    }
    let binding = QueueBinding::new(context_device, None);
    if binding.context_device().sycl().is_ok() {
        // Accesses wait for this queue, also if the program never asks for it.
        binding.queue_or_cached(py)?;
    }
    let array = offer.array(py, attributes.kind, binding)?;
    note_import_by_address(attributes.kind);
    Ok(Some(array))
}

/// A copy in USM of host memory.
fn copy_of_host(
    py: Python<'_>,
    offer: &Offered<'_>,
    binding: Option<Arc<QueueBinding>>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    if copy == Some(false) {
        return Err(PyBufferError::new_err(
            "the tensor is in memory of the host that is not USM; it takes a copy, and copy is False",
        ));
    }
    let tensor = &offer.tensor;
    // The copy belongs to zeusm alone, so it is writable.
    let (element, layout) = (tensor.item.into(), tensor.layout.clone());
    let asked = asked(binding, None);
    let plan = Plan::elsewhere(py, asked, "host memory", element, layout)?;
    // SAFETY: the producer keeps its memory valid until the structure's deleter is called.
    unsafe { make::of_host(py, &plan, tensor.pointer, || offer.consume()) }
}
