//! Handles that were made up or changed, with a checksum that says that they are right. None opens, whatever is open
//! already: neither more than was exported, nor anything else.
//!
//! `PROPTEST_CASES` says how many are tried.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::process::{Child, ChildStdout, Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use zeusm::ipc::Error;
use zeusm::{Context, Device, IpcHandle, UsmKind};

use super::common::{
    Secluded, allocate, bytes, checked, edited, give_up_tracing, hex, in_a_new_process, open,
    place, unhex,
};

/// Where the fields are, from the process's number to the seal.
const FIELDS: [Range<usize>; 20] = [
    12..16,   // process
    16..32,   // boot
    32..48,   // device
    48..49,   // kind
    49..50,   // whether there is a descriptor
    50..52,   // nothing
    52..56,   // place in the list of exports
    56..72,   // token
    72..80,   // number of the export
    80..88,   // device of the list's file
    88..96,   // inode of the list's file
    96..100,  // descriptor of the list
    100..108, // device of the memory's file
    108..116, // inode of the memory's file
    116..180, // the driver's handle
    180..188, // number of the allocation
    WHOLE,
    OFFSET,
    SIZE,
    212..228, // seal
];
const WHOLE: Range<usize> = 188..196;
const OFFSET: Range<usize> = 196..204;
const SIZE: Range<usize> = 204..212;

/// A change of one field, of several, or of any bytes.
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
                for (place, byte) in changed {
                    bytes[*place] = *byte;
                }
            }
        }
        checked(bytes)
    }
}

/// No change of the handle opens, with nothing open and with the memory open; the handle itself does.
fn no_change_opens(handle: &IpcHandle, place: &(Context, Device)) {
    for is_open in [false, true] {
        let opened = is_open.then(|| open(handle, place).unwrap());
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let result = runner.run(&changes(), |change| {
            let bytes = change.apply(handle.to_bytes());
            if let Ok(changed) = IpcHandle::from_bytes(&bytes)
                && changed != *handle
            {
                let answer = changed.open(&place.0, &place.1);
                prop_assert!(answer.is_err(), "{answer:?}");
            }
            Ok(())
        });
        assert!(result.is_ok(), "{result:?}");
        let mapping = open(handle, place).unwrap();
        assert!(opened.is_none_or(|opened| opened.as_ptr() == mapping.as_ptr()));
        assert_eq!(bytes(mapping.as_ptr(), 3000), [5; 3000]);
    }
}

/// A process that has exported the middle of some memory, until this is dropped.
struct Exporter {
    process: Child,
    output: BufReader<ChildStdout>,
    handle: IpcHandle,
}

impl Exporter {
    fn new() -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "forged::exporter", "--ignored", "--nocapture"])
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
        // It ends with its input.
        drop(self.process.stdin.take());
        self.output.read_to_end(&mut Vec::new()).unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
#[ignore = "the process that other tests open the memory of"]
fn exporter() {
    let memory = allocate(&place(), UsmKind::Shared, 9000);
    bytes(memory.as_ptr(), 9000).fill(6);
    bytes(memory.as_ptr(), 9000)[4000..7000].fill(5);
    let handle = IpcHandle::new(&memory, 4000..7000).unwrap();
    println!("handle={}", hex(&handle.to_bytes()));
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn no_change_of_ones_own_handle_opens() {
    let place = place();
    let memory = allocate(&place, UsmKind::Shared, 3000);
    bytes(memory.as_ptr(), 3000).fill(5);
    no_change_opens(&IpcHandle::new(&memory, 0..3000).unwrap(), &place);
}

#[test]
fn no_change_of_anothers_handle_opens() {
    let exporter = Exporter::new();
    no_change_opens(&exporter.handle, &place());
}

#[test]
fn no_change_of_anothers_handle_opens_by_the_socket() {
    let _secluded = Secluded::new();
    let exporter = Exporter::new();
    let task = hex(&exporter.handle.to_bytes());
    in_a_new_process("forged::opener_by_the_socket", &task);
}

#[test]
#[ignore = "the other side of the test before, which runs it"]
fn opener_by_the_socket() {
    give_up_tracing();
    let handle = unhex(&env::var("ZEUSM_TEST_IPC").unwrap());
    no_change_opens(&IpcHandle::from_bytes(&handle).unwrap(), &place());
}

#[test]
fn a_larger_range_does_not_open_while_the_right_one_is_open() {
    let place = place();
    let exporter = Exporter::new();
    let mapping = open(&exporter.handle, &place).unwrap();
    let large = (1u64 << 30).to_le_bytes();
    let whole = edited(&exporter.handle, WHOLE.start, &large);
    // With whole and size as large as each other, the range begins where the allocation does.
    let at_the_beginning = edited(&whole, OFFSET.start, &[0; 8]);
    let larger = edited(&at_the_beginning, SIZE.start, &large);
    for changed in [whole, at_the_beginning, larger] {
        let answer = open(&changed, &place);
        let process = exporter.handle.process();
        let is_told = matches!(answer, Err(Error::Forged { process: it }) if it == process);
        assert!(is_told, "{answer:?}");
    }
    assert_eq!(bytes(mapping.as_ptr(), 3000), [5; 3000]);
}
