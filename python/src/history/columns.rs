//! The file format: lists, and tables by column.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::places::{NONE, Places};
use super::state::State;
use crate::stacks::{self, Frame, Stack};
use zeusm::history::{Action, Event, Place, Thread};

/// The names of the actions; an action is its index.
const ACTIONS: [(&str, Action); 6] = [
    ("allocate", Action::Allocate),
    ("free", Action::Free),
    ("reserve", Action::Reserve),
    ("release", Action::Release),
    ("trim", Action::Trim),
    ("fail", Action::Fail),
];

/// A state with the lists that its rows refer to.
pub(super) struct HistoryColumns<'a> {
    state: &'a State,
    places: Places,
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
}

/// A live block.
struct Block<'a> {
    address: usize,
    size: usize,
    place: &'a Place,
}

/// A table in the making: columns of values of its rows.
struct Table<'py, 'a, T> {
    columns: Bound<'py, PyDict>,
    rows: &'a [T],
}

impl<'py, 'a, T> Table<'py, 'a, T> {
    fn new(py: Python<'py>, rows: &'a [T]) -> Self {
        Self {
            columns: PyDict::new(py),
            rows,
        }
    }

    fn add<V: IntoPyObject<'py>>(&self, name: &str, value: impl Fn(&'a T) -> V) -> PyResult<()> {
        let values: Vec<V> = self.rows.iter().map(value).collect();
        self.columns.set_item(name, values)
    }
}

/// Strings by their index in order of the first use.
#[derive(Default)]
struct Names {
    indices: HashMap<String, usize>,
    names: Vec<String>,
}

impl Names {
    fn index(&mut self, name: String) -> usize {
        let names = &mut self.names;
        *self.indices.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        })
    }
}

impl<'a> HistoryColumns<'a> {
    pub(super) fn new(py: Python<'_>, state: &'a State) -> Self {
        let events = state.events().iter().map(|event| &event.place);
        let slabs = state.slabs.iter().map(|slab| &slab.place);
        let unpooled = state.unpooled.iter().map(|block| &block.place);
        let mut places = Places::new(events.chain(slabs).chain(unpooled));
        let operations = state.operations().iter();
        operations.for_each(|operation| places.add_device(operation.device));
        let table = state.stacks.as_ref();
        let (frames, stacks) = table.map_or_else(Default::default, |table| table.contents(py));
        Self {
            state,
            places,
            frames,
            stacks,
        }
    }

    /// The index of a recorded stack; that of an event which began in an earlier recording is unknown.
    fn stack(&self, number: Option<u32>) -> i64 {
        let index = number.and_then(|number| stacks::index_of(&self.stacks, number));
        index.map_or(NONE, |index| index as i64)
    }

    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let recording = self.state.recording.as_ref();
        let start = recording.map_or_else(SystemTime::now, |recording| recording.start);
        let start = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = PyDict::new(py);
        clock.set_item("start", start.as_nanos())?;
        let dict = PyDict::new(py);
        dict.set_item("clock", clock)?;
        dict.set_item("devices", self.places.devices(py)?)?;
        dict.set_item("kinds", ["host", "device", "shared"])?;
        dict.set_item("pools", self.places.pools(py)?)?;
        dict.set_item("threads", self.threads(py)?)?;
        self.add_stacks(&dict)?;
        dict.set_item("actions", ACTIONS.map(|(name, _)| name))?;
        dict.set_item("events", self.events(py)?)?;
        dict.set_item("failures", self.failures(py)?)?;
        dict.set_item("blocks", self.blocks(py)?)?;
        dict.set_item("slabs", self.slabs(py)?)?;
        dict.set_item("operations", self.operations(py)?)?;
        let dropped = recording.map_or((0, 0), |it| (it.dropped, it.dropped_operations));
        dict.set_item("dropped", dropped.0)?;
        dict.set_item("dropped_operations", dropped.1)?;
        Ok(dict)
    }

    fn threads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let threads = PyList::empty(py);
        let recorded = self.state.recording.as_ref();
        for Thread { id, name, .. } in recorded.map_or(&[][..], |recording| &recording.threads) {
            let thread = PyDict::new(py);
            let table = self.state.stacks.as_ref();
            let known = table.and_then(|table| table.thread_name(*id));
            thread.set_item("id", id)?;
            thread.set_item("name", known.as_ref().unwrap_or(name))?;
            threads.append(thread)?;
        }
        Ok(threads)
    }

    fn add_stacks(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = dict.py();
        let (mut files, mut functions) = (Names::default(), Names::default());
        let names = self.frames.iter().map(|frame| {
            let (file, function) = frame.names(py);
            (files.index(file), functions.index(function))
        });
        let (file, function): (Vec<usize>, Vec<usize>) = names.unzip();
        let line: Vec<i32> = self.frames.iter().map(|frame| frame.line).collect();
        dict.set_item("files", files.names)?;
        dict.set_item("functions", functions.names)?;
        let columns = PyDict::new(py);
        columns.set_item("file", file)?;
        columns.set_item("line", line)?;
        columns.set_item("function", function)?;
        dict.set_item("frames", columns)?;
        let lists = PyList::empty(py);
        for stack in &self.stacks {
            lists.append(&*stack.frames)?;
        }
        dict.set_item("stacks", lists)
    }

    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = Table::new(py, self.state.events());
        let action = |event: &Event| {
            let mut actions = ACTIONS.iter();
            let index = actions.position(|(_, action)| *action == event.action);
            index.map_or(NONE, |index| index as i64)
        };
        table.add("time", |event| event.time)?;
        table.add("action", action)?;
        // An address may have its highest bit set.
        table.add("address", |event| event.address)?;
        table.add("size", |event| event.size)?;
        table.add("kind", |event| Places::kind(&event.place))?;
        table.add("device", |event| self.places.device(event.place.device))?;
        table.add("pool", |event| self.places.pool(&event.place))?;
        table.add("thread", |event| event.thread)?;
        table.add("stack", |event| self.stack(event.stack))?;
        table.add("hit", |event| event.hit.map_or(NONE, i64::from))?;
        Ok(table.columns)
    }

    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let failures = PyList::empty(py);
        let recorded = self.state.recording.as_ref();
        for failure in recorded.map_or(&[][..], |recording| &recording.failures) {
            let entry = PyDict::new(py);
            entry.set_item("event", failure.event)?;
            entry.set_item("message", &failure.message)?;
            entry.set_item("cached", failure.cached)?;
            entry.set_item("in_use", failure.in_use)?;
            entry.set_item("free", failure.free.map_or(NONE, |free| free as i64))?;
            failures.append(entry)?;
        }
        Ok(failures)
    }

    fn operations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = Table::new(py, self.state.operations());
        table.add("name", |operation| operation.name)?;
        table.add("time", |operation| operation.time)?;
        table.add("duration", |operation| operation.duration)?;
        table.add("size", |operation| operation.size)?;
        table.add("device", |operation| self.places.device(operation.device))?;
        table.add("queue", |operation| operation.queue)?;
        Ok(table.columns)
    }

    /// The live blocks of pools, and those of none.
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pooled = self.state.slabs.iter().flat_map(|slab| {
            let blocks = slab.blocks.iter();
            blocks.map(|range| Block {
                address: range.start,
                size: range.len(),
                place: &slab.place,
            })
        });
        let unpooled = self.state.unpooled.iter().map(|block| Block {
            address: block.range.start,
            size: block.range.len(),
            place: &block.place,
        });
        let blocks: Vec<Block<'_>> = pooled.chain(unpooled).collect();
        let recording = self.state.recording.as_ref();
        let recorded = |block: &Block<'_>| recording?.live.get(&block.address);
        let table = Table::new(py, &blocks);
        table.add("address", |block| block.address)?;
        table.add("size", |block| block.size)?;
        table.add("kind", |block| Places::kind(block.place))?;
        table.add("device", |block| self.places.device(block.place.device))?;
        table.add("pool", |block| self.places.pool(block.place))?;
        table.add("stack", |block| {
            self.stack(recorded(block).and_then(|live| live.stack))
        })?;
        table.add("time", |block| {
            recorded(block).map_or(NONE, |live| live.time as i64)
        })?;
        Ok(table.columns)
    }

    /// The memory that is held from the driver: of pools, and of blocks of none.
    fn slabs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pooled = self.state.slabs.iter();
        let pooled =
            pooled.map(|slab| (&slab.range, &slab.place, slab.used_bytes, slab.block_size));
        let unpooled = self.state.unpooled.iter();
        let unpooled = unpooled.map(|block| (&block.range, &block.place, block.range.len(), 0));
        let slabs: Vec<_> = pooled.chain(unpooled).collect();
        let table = Table::new(py, &slabs);
        table.add("address", |(range, ..)| range.start)?;
        table.add("size", |(range, ..)| range.len())?;
        table.add("kind", |(_, place, ..)| Places::kind(place))?;
        table.add("device", |(_, place, ..)| self.places.device(place.device))?;
        table.add("pool", |(_, place, ..)| self.places.pool(place))?;
        table.add("used", |(_, _, used, _)| *used)?;
        table.add("block", |(.., block)| *block)?;
        Ok(table.columns)
    }
}
