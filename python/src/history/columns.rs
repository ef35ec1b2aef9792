//! The file format: lists, and tables by column.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::PyHistoryState;
use super::places::{NONE, Places};
use crate::stacks::{self, Frame, Stack};
use zeusm::history::{Action, Event, Failure, Place, Thread};

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
    state: &'a PyHistoryState,
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
    pub(super) fn new(py: Python<'_>, state: &'a PyHistoryState) -> Self {
        let events = state.events().iter().map(|event| &event.place);
        let slabs = state.slabs.iter().map(|slab| &slab.place);
        let unpooled = state.unpooled.iter().map(|block| &block.place);
        let places = Places::new(events.chain(slabs).chain(unpooled));
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
        dict.set_item(
            "dropped",
            recording.map_or(0, |recording| recording.dropped),
        )?;
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
        let events = self.state.events();
        let columns = PyDict::new(py);
        let add = |name, value: &dyn Fn(&Event) -> i64| {
            let values: Vec<i64> = events.iter().map(value).collect();
            columns.set_item(name, values)
        };
        let action = |event: &Event| {
            let mut actions = ACTIONS.iter();
            actions.position(|(_, action)| *action == event.action)
        };
        add("time", &|event| event.time as i64)?;
        add("action", &|event| {
            action(event).map_or(NONE, |index| index as i64)
        })?;
        add("size", &|event| event.size as i64)?;
        add("kind", &|event| Places::kind(&event.place))?;
        add("device", &|event| self.places.device(&event.place))?;
        add("pool", &|event| self.places.pool(&event.place))?;
        add("thread", &|event| i64::from(event.thread))?;
        add("stack", &|event| self.stack(event.stack))?;
        add("hit", &|event| event.hit.map_or(NONE, i64::from))?;
        // An address may have its highest bit set.
        let addresses: Vec<usize> = events.iter().map(|event| event.address).collect();
        columns.set_item("address", addresses)?;
        Ok(columns)
    }

    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let failures = PyList::empty(py);
        let recorded = self.state.recording.as_ref();
        for failure in recorded.map_or(&[][..], |recording| &recording.failures) {
            let Failure {
                event,
                message,
                cached,
                in_use,
                free,
                ..
            } = failure;
            let entry = PyDict::new(py);
            entry.set_item("event", event)?;
            entry.set_item("message", message)?;
            entry.set_item("cached", cached)?;
            entry.set_item("in_use", in_use)?;
            entry.set_item("free", free.map_or(NONE, |free| free as i64))?;
            failures.append(entry)?;
        }
        Ok(failures)
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
        let columns = PyDict::new(py);
        let addresses: Vec<usize> = blocks.iter().map(|block| block.address).collect();
        columns.set_item("address", addresses)?;
        let add = |name, value: &dyn Fn(&Block<'_>) -> i64| {
            let values: Vec<i64> = blocks.iter().map(value).collect();
            columns.set_item(name, values)
        };
        add("size", &|block| block.size as i64)?;
        add("kind", &|block| Places::kind(block.place))?;
        add("device", &|block| self.places.device(block.place))?;
        add("pool", &|block| self.places.pool(block.place))?;
        add("stack", &|block| {
            self.stack(recorded(block).and_then(|live| live.stack))
        })?;
        add("time", &|block| {
            recorded(block).map_or(NONE, |live| live.time as i64)
        })?;
        Ok(columns)
    }

    /// The memory that is held from the driver: of pools, and of blocks of none.
    fn slabs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pooled = self.state.slabs.iter();
        let pooled =
            pooled.map(|slab| (&slab.range, &slab.place, slab.used_bytes, slab.block_size));
        let unpooled = self.state.unpooled.iter();
        let unpooled = unpooled.map(|block| (&block.range, &block.place, block.range.len(), 0));
        let slabs: Vec<_> = pooled.chain(unpooled).collect();
        let columns = PyDict::new(py);
        let add = |name, values: Vec<i64>| columns.set_item(name, values);
        let of_place = |value: &dyn Fn(&Place) -> i64| -> Vec<i64> {
            slabs.iter().map(|(_, place, ..)| value(place)).collect()
        };
        add("kind", of_place(&Places::kind))?;
        add("device", of_place(&|place| self.places.device(place)))?;
        add("pool", of_place(&|place| self.places.pool(place)))?;
        let sizes = slabs.iter().map(|(range, ..)| range.len() as i64);
        add("size", sizes.collect())?;
        let used = slabs.iter().map(|(_, _, used, _)| *used as i64);
        add("used", used.collect())?;
        let blocks = slabs.iter().map(|(.., block)| *block as i64);
        add("block", blocks.collect())?;
        let addresses: Vec<usize> = slabs.iter().map(|(range, ..)| range.start).collect();
        columns.set_item("address", addresses)?;
        Ok(columns)
    }
}

impl PyHistoryState {
    fn events(&self) -> &[Event] {
        let recording = self.recording.as_ref();
        recording.map_or(&[], |recording| &recording.events)
    }
}
