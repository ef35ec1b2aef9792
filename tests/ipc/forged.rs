//! Forged and changed handles with a right checksum. None of them can be opened, also while the memory is mapped: neither a
//! larger range than the exported one, nor other memory.
//!
//! `PROPTEST_CASES` is the number of cases.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::process::{Child, ChildStdout, Stdio};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use zeusm::ipc::Error;
use zeusm::{Context, Device, IpcHandle, UsmKind};

use super::child;
use super::common::{allocate, checked, edited, hex, open, read, setup, unhex, write};

/// The fields, from the process id to the authentication tag, which follows them.
const FIELDS: [Range<usize>; 12] = [
    12..16,   // process
    16..32,   // boot
    32..48,   // device
    48..49,   // kind
    49..52,   // padding
    52..68,   // token
    68..76,   // id of the export
    76..140,  // the driver's handle
    140..148, // id of the allocation
    ALLOCATION_SIZE,
    OFFSET,
    SIZE,
];
const ALLOCATION_SIZE: Range<usize> = 148..156;
const OFFSET: Range<usize> = 156..164;
const SIZE: Range<usize> = 164..172;

/// A change of some fields, or of any bytes.
#[derive(Clone, Debug)]
enum Change {
    Fields(Vec<(usize, [u8; 64])>),
    Bytes(Vec<(usize, u8)>),
}

fn changes() -> impl Strategy<Value = Change> {
    let edge = prop_oneof![
        any::<u64>(),
        0..70_000u64,
        (0..64u32).prop_map(|bit| 1 << bit),
        (0..64u32).prop_map(|bit| (1 << bit) - 1),
        Just(u64::MAX),
    ];
    let content = prop_oneof![
        edge.prop_map(|edge| std::array::from_fn(|index| edge.to_le_bytes()[index % 8])),
        prop::array::uniform32(any::<u16>()).prop_map(|words| std::array::from_fn(|index| words
            [index / 2]
            .to_le_bytes()[index % 2])),
    ];
    prop_oneof![
        prop::collection::vec((0..FIELDS.len(), content), 1..4).prop_map(Change::Fields),
        prop::collection::vec((12..IpcHandle::LENGTH - 4, any::<u8>()), 1..8)
            .prop_map(Change::Bytes),
    ]
}

impl Change {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Fields(fields) => {
                for (field, content) in fields {
                    let field = FIELDS[*field].clone();
                    let length = field.len();
                    bytes[field].copy_from_slice(&content[..length]);
                }
            }
            Self::Bytes(changed) => {
                for (offset, byte) in changed {
                    bytes[*offset] = *byte;
                }
            }
        }
        checked(bytes)
    }
}

/// Checks that no changed handle can be opened, with and without a mapping of the memory, and that the handle itself can.
fn no_change_opens(handle: &IpcHandle, target: &(Context, Device)) {
    for is_open in [false, true] {
        let opened = is_open.then(|| open(handle, target).unwrap());
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let result = runner.run(&changes(), |change| {
            let bytes = change.apply(handle.to_bytes());
            if let Ok(changed) = IpcHandle::from_bytes(&bytes)
                && changed != *handle
            {
                let answer = changed.open(&target.0, &target.1);
                prop_assert!(answer.is_err(), "{answer:?}");
            }
            Ok(())
        });
        assert!(result.is_ok(), "{result:?}");
        let mapping = open(handle, target).unwrap();
        assert!(opened.is_none_or(|opened| opened.as_ptr() == mapping.as_ptr()));
        assert_eq!(read(target, mapping.as_ptr(), 3000), [5; 3000]);
    }
}

/// A process that exports the middle of an allocation until this is dropped.
struct Exporter {
    process: Child,
    output: BufReader<ChildStdout>,
    handle: IpcHandle,
}

impl Exporter {
    fn new() -> Self {
        let mut process = child::command("forged::exporter")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map(Result::unwrap);
        let handle = lines
            .find_map(|line| Some(line.split_once("handle=")?.1.to_owned()))
            .unwrap();
        let handle = IpcHandle::from_bytes(&unhex(&handle)).unwrap();
        Self {
            process,
            output,
            handle,
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // The process exits at the end of its input.
        drop(self.process.stdin.take());
        self.output.read_to_end(&mut Vec::new()).unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
#[ignore = "the exporting process of other tests"]
fn exporter() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Device, 9000);
    let mut content = [6; 9000];
    content[4000..7000].fill(5);
    write(&target, memory.as_ptr(), &content);
    let handle = IpcHandle::new(&memory, 4000..7000).unwrap();
    println!("handle={}", hex(&handle.to_bytes()));
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn no_change_of_this_processs_handle_opens() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Device, 3000);
    write(&target, memory.as_ptr(), &[5; 3000]);
    no_change_opens(&IpcHandle::new(&memory, 0..3000).unwrap(), &target);
}

#[test]
fn no_change_of_another_processs_handle_opens() {
    let exporter = Exporter::new();
    no_change_opens(&exporter.handle, &setup());
}

#[test]
fn a_larger_range_does_not_open_while_the_exported_one_is_open() {
    let target = setup();
    let exporter = Exporter::new();
    let mapping = open(&exporter.handle, &target).unwrap();
    let large = (1u64 << 30).to_le_bytes();
    let allocation = edited(&exporter.handle, ALLOCATION_SIZE.start, &large);
    // A range of the same size as the allocation has to begin at its base.
    let at_the_base = edited(&allocation, OFFSET.start, &[0; 8]);
    let range = edited(&at_the_base, SIZE.start, &large);
    for changed in [allocation, at_the_base, range] {
        let answer = open(&changed, &target);
        let process = exporter.handle.process();
        let is_forged = matches!(answer, Err(Error::Forged(it)) if it == process);
        assert!(is_forged, "{answer:?}");
    }
    assert_eq!(read(&target, mapping.as_ptr(), 3000), [5; 3000]);
}
