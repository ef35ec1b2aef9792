//! The state of a history: the rows of the file's tables, of which the package makes columns. A number that there is not is -1.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::stacks::{self, StackTable};
use zeusm::history::{Place, Recording};
use zeusm::pool::HeldSlab;
use zeusm::usm;
use zeusm::{Device, Runtime};

/// The memory of zeusm at one time, and what was recorded until then.
#[pyclass(name = "_HistoryState", module = "zeusm.memory", frozen)]
pub(crate) struct PyHistoryState {
    held: Vec<HeldSlab>,
    pub(super) recording: Option<Recording>,
    stacks: Option<Arc<StackTable>>,
}

impl PyHistoryState {
    /// The blocks first, so that what is recorded of them is known.
    pub(super) fn new(recording: impl FnOnce() -> Option<Recording>) -> Self {
        Self {
            held: usm::held(),
            recording: recording(),
            stacks: stacks::current(),
        }
    }
}

#[pymethods]
impl PyHistoryState {
    /// The rows of the tables of the file format, of which the package makes columns. Rows refer to a place by its index, to a
    /// device by its handle, and to a stack by its number.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = PyDict::new(py);
        let recording = self.recording.as_ref();
        let start = recording.map_or_else(SystemTime::now, |recording| recording.start);
        let start = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        rows.set_item("start", start.as_nanos())?;
        let dropped = recording.map_or((0, 0), |it| (it.dropped, it.dropped_operations));
        rows.set_item("dropped", dropped)?;
        let mut places = Indexed::new();
        add_recorded(&rows, self, &mut places)?;
        add_live(&rows, self, &mut places)?;
        add_stacks(&rows, self)?;
        add_places(&rows, self, &places.values)?;
        Ok(rows)
    }
}

/// Values by their index, in the order of their first use.
struct Indexed<T> {
    indices: HashMap<T, usize>,
    values: Vec<T>,
}

impl<T: Copy + Eq + Hash> Indexed<T> {
    fn new() -> Self {
        Self {
            indices: HashMap::new(),
            values: Vec::new(),
        }
    }

    fn index(&mut self, value: T) -> usize {
        let values = &mut self.values;
        *self.indices.entry(value).or_insert_with(|| {
            values.push(value);
            values.len() - 1
        })
    }
}

fn number<T: TryInto<i64>>(value: Option<T>) -> i64 {
    value.and_then(|value| value.try_into().ok()).unwrap_or(-1)
}

/// The events, failures, operations and threads of the recording.
fn add_recorded(
    rows: &Bound<'_, PyDict>,
    state: &PyHistoryState,
    places: &mut Indexed<Place>,
) -> PyResult<()> {
    let recording = state.recording.as_ref();
    let events = recording.map_or(&[][..], |it| &it.events).iter().map(|it| {
        let (place, stack) = (places.index(it.place), number(it.stack));
        let (action, hit) = (it.action as u8, number(it.hit.map(u8::from)));
        (
            it.time, action, it.address, it.size, place, it.thread, stack, hit,
        )
    });
    rows.set_item("events", events.collect::<Vec<_>>())?;
    let operations = recording.map_or(&[][..], |it| &it.operations).iter();
    let operations =
        operations.map(|it| (it.time, it.duration, it.name, it.size, it.device, it.queue));
    rows.set_item("operations", operations.collect::<Vec<_>>())?;
    let failures = recording.map_or(&[][..], |recording| &recording.failures);
    let failures = failures.iter().map(|it| {
        let free = number(it.free);
        (it.event, &it.message, it.cached, it.in_use, free)
    });
    rows.set_item("failures", failures.collect::<Vec<_>>())?;
    let threads = recording.map_or(&[][..], |recording| &recording.threads);
    let threads = threads.iter().map(|it| {
        let table = state.stacks.as_ref();
        let known = table.and_then(|table| table.thread_name(it.id));
        (it.id, known.unwrap_or_else(|| it.name.clone()))
    });
    rows.set_item("threads", threads.collect::<Vec<_>>())
}

/// The live blocks, and the memory that is held from the driver: of pools, and of blocks of none.
fn add_live(
    rows: &Bound<'_, PyDict>,
    state: &PyHistoryState,
    places: &mut Indexed<Place>,
) -> PyResult<()> {
    let (mut blocks, mut slabs) = (Vec::new(), Vec::new());
    for slab in &state.held {
        let place = places.index(slab.place);
        blocks.extend(slab.blocks.iter().map(|block| (block.clone(), place)));
        let (range, used) = (&slab.range, slab.used_bytes);
        slabs.push((range.start, range.len(), place, used, slab.block_size));
    }
    let recorded = |at: usize| {
        let recording: Option<&Recording> = state.recording.as_ref();
        recording.and_then(|recording| recording.live.get(&at))
    };
    let blocks = blocks.into_iter().map(|(range, place): (Range<usize>, _)| {
        let live = recorded(range.start);
        let (stack, time) = (live.and_then(|it| it.stack), live.map(|it| it.time));
        (range.start, range.len(), place, number(stack), number(time))
    });
    rows.set_item("blocks", blocks.collect::<Vec<_>>())?;
    rows.set_item("slabs", slabs)
}

/// The frames, and the stacks of their indices. A stack that began in an earlier recording is in none of them.
fn add_stacks(rows: &Bound<'_, PyDict>, state: &PyHistoryState) -> PyResult<()> {
    let py = rows.py();
    let table = state.stacks.as_ref();
    let (frames, stacks) = table.map_or_else(Default::default, |table| table.contents(py));
    let frames = frames.iter().map(|frame| {
        let (file, function) = frame.names(py);
        (file, frame.line, function)
    });
    rows.set_item("frames", frames.collect::<Vec<_>>())?;
    let stacks = stacks.iter().map(|it| (it.number, it.frames.to_vec()));
    rows.set_item("stacks", stacks.collect::<Vec<_>>())
}

/// The places, and their devices and those of operations behind those of the runtime, in Level Zero's order.
fn add_places(rows: &Bound<'_, PyDict>, state: &PyHistoryState, places: &[Place]) -> PyResult<()> {
    let mut handles = Indexed::new();
    let listed = Runtime::get().map_or(&[][..], Runtime::devices).iter();
    let used = places.iter().map(|place| place.device);
    let recording = state.recording.as_ref();
    let operations = recording.map_or(&[][..], |it| &it.operations).iter();
    let used = used.chain(operations.map(|it| it.device));
    for handle in listed.map(|device| device.handle().addr()).chain(used) {
        handles.index(handle);
    }
    let devices = handles.values.into_iter().map(|handle| {
        let device = Device::of_handle(handle);
        let name = device.as_ref().map_or("?", Device::name).to_owned();
        (handle, name, number(device.map(|it| it.memory_size())))
    });
    rows.set_item("devices", devices.collect::<Vec<_>>())?;
    let places = places.iter().map(|it| {
        let kind = number(it.kind.map(|kind| kind as u8));
        (kind, it.device, it.context, it.pool)
    });
    rows.set_item("places", places.collect::<Vec<_>>())
}
