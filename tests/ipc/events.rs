//! Events between processes: handoffs, failures, and the end of either process.
//!
//! `ZEUSM_TEST_HANDOFFS` is the number of handoffs, `ZEUSM_TEST_KILLS` that of processes that are killed at some moment.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use zeusm::ipc::{Error, Mapping, are_events_supported};
use zeusm::{Completion, Context, Device, Event, HostMemory, IpcEventHandle, IpcHandle, Queue};

use super::child;
use super::common::{checked, hex, setup, unhex};

const SIZE: usize = 256 << 10;
/// Longer than any wait that ends.
const LONG: Duration = Duration::from_secs(60);

fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |count| count.parse().unwrap())
}

struct Here {
    context: Context,
    device: Device,
    queue: Queue,
}

impl Here {
    fn new() -> Self {
        let (context, device) = setup();
        let queue = Queue::new(&context, &device).unwrap();
        Self {
            context,
            device,
            queue,
        }
    }

    fn memory(&self) -> HostMemory {
        HostMemory::new(&self.context, &self.device, SIZE).unwrap()
    }

    fn open(&self, handle: &IpcEventHandle) -> Event {
        let bytes = handle.to_bytes();
        let handle = IpcEventHandle::from_bytes(&bytes).unwrap();
        handle.open(&self.queue).unwrap()
    }

    fn export(&self, event: &Event) -> Result<IpcEventHandle, Error> {
        IpcEventHandle::new(&self.queue, event)
    }

    /// An operation that waits for the event.
    fn follow(&self, event: &Event, memory: &HostMemory) -> Event {
        let dependent = self.queue.depends_on(std::slice::from_ref(event)).unwrap();
        fill(&dependent, memory, 1)
    }

    /// An operation that waits until the sender is dropped, and then fails if it was not used.
    fn blocked(&self, memory: &HostMemory) -> (std::sync::mpsc::Sender<()>, Event) {
        let (release, released) = std::sync::mpsc::channel();
        let task = move || released.recv().map_err(|_| zeusm::Error::NullPointer);
        let task = self.queue.try_host_task(task).unwrap();
        let blocked = self.queue.depends_on(&[task]).unwrap();
        (release, fill(&blocked, memory, 7))
    }
}

fn fill(queue: &Queue, memory: &HostMemory, value: u8) -> Event {
    let to = memory.as_ptr().cast_mut().cast();
    // SAFETY: the tests keep the memory until the fill is complete, and access it only then.
    unsafe { queue.fill_raw(to, value, memory.size(), Completion::Event) }
        .unwrap()
        .unwrap()
}

#[track_caller]
fn assert_complete(event: &Event) {
    assert!(event.wait(Some(LONG)).unwrap());
    assert!(event.is_complete().unwrap() && event.is_over());
}

/// Checks that the event has failed with the process, in each way to ask.
#[track_caller]
fn assert_failed(event: &Event, process: u32) {
    let is_expected =
        |error: zeusm::Error| matches!(error, zeusm::Error::ProducerFailed(it) if it == process);
    assert!(is_expected(event.wait(Some(LONG)).unwrap_err()));
    assert!(is_expected(event.is_complete().unwrap_err()));
    assert!(is_expected(event.check_submission().unwrap_err()));
    assert!(event.is_over());
}

/// Checks that the handle of an event that has failed does not open, or opens as that.
fn assert_late(handle: &IpcEventHandle, here: &Here) {
    match handle.open(&here.queue) {
        Ok(event) => assert_failed(&event, handle.process()),
        Err(Error::LevelZero(error)) => assert!(error.is_of_producer()),
        Err(error) => panic!("{error}"),
    }
}

/// A process that runs [`producer`].
struct Producer {
    process: Child,
    /// `None` at its end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Producer {
    fn new(task: &str) -> Self {
        let mut process = child::command("events::producer")
            .env("ZEUSM_TEST_IPC", task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: process.stdin.take(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// The bytes of the next handle; `None` after the end of the process.
    fn receive(&mut self) -> Option<Vec<u8>> {
        receive(&mut self.output)
    }

    fn event(&mut self) -> IpcEventHandle {
        IpcEventHandle::from_bytes(&self.receive().unwrap()).unwrap()
    }

    /// Lets a blocked operation start.
    fn release(&mut self) {
        self.input.as_ref().unwrap().write_all(b"\n").unwrap();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for the usual end.
    fn finish(mut self) {
        drop(self.input.take());
        self.output.read_to_end(&mut Vec::new()).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

/// Also when a test fails.
impl Drop for Producer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn receive(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut lines = from.lines();
    lines.find_map(|line| Some(unhex(line.ok()?.split_once("handle=")?.1)))
}

fn send(bytes: &[u8]) {
    println!("handle={}", hex(bytes));
}

#[test]
#[ignore = "the other process of the other tests"]
fn producer() {
    let task = std::env::var("ZEUSM_TEST_IPC").unwrap();
    let here = Here::new();
    let mut memory = here.memory();
    if let Some(delay) = task.strip_prefix("handoffs ") {
        let mapped = IpcHandle::of_memory(&mut memory, 0..SIZE).unwrap();
        send(&mapped.to_bytes());
        return produce(
            &here,
            &memory,
            Duration::from_micros(delay.parse().unwrap()),
        );
    }
    if task == "complete" {
        let event = fill(&here.queue, &memory, 1);
        assert_complete(&event);
        return send(&here.export(&event).unwrap().to_bytes());
    }
    let (release, event) = here.blocked(&memory);
    let handle = here.export(&event).unwrap();
    drop(event);
    send(&handle.to_bytes());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    match task.as_str() {
        "blocked" => release.send(()).unwrap(),
        "failing" => drop(release),
        "executing" => {
            use std::os::unix::process::CommandExt;
            panic!("{}", std::process::Command::new("sleep").arg("1000").exec());
        }
        other => panic!("{other}"),
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let _ = here.queue.wait();
}

/// Fills the memory, hands it over, and gets it back by the event of the other process's copy, until the input ends. A fill comes
/// `delay` after it was handed over.
fn produce(here: &Here, memory: &HostMemory, delay: Duration) {
    let mut input = std::io::stdin().lock();
    let mut queue = here.queue.clone();
    for value in (0..=u8::MAX).cycle() {
        if !delay.is_zero() {
            let later = here.queue.host_task(move || thread::sleep(delay)).unwrap();
            queue = queue.depends_on(&[later]).unwrap();
        }
        let filled = fill(&queue, memory, value);
        send(&here.export(&filled).unwrap().to_bytes());
        let Some(bytes) = receive(&mut input) else {
            break;
        };
        let copied = IpcEventHandle::from_bytes(&bytes).unwrap();
        let copied = here.open(&copied);
        queue = here.queue.depends_on(&[copied]).unwrap();
    }
}

/// The memory of [`produce`].
fn mapping(here: &Here, producer: &mut Producer) -> Mapping {
    let handle = IpcHandle::from_bytes(&producer.receive().unwrap()).unwrap();
    handle.open(&here.context, &here.device).unwrap()
}

/// The other side of [`produce`]: copies what it is handed, and checks it. Returns the number of handoffs before the process
/// ended, and whether an operation or its submission failed with it.
fn consume(here: &Here, producer: &mut Producer, mapping: &Mapping, most: usize) -> (usize, bool) {
    let copy = here.memory();
    for (number, value) in (0..=u8::MAX).cycle().enumerate().take(most) {
        let Some(bytes) = producer.receive() else {
            return (number, false);
        };
        let handle = IpcEventHandle::from_bytes(&bytes).unwrap();
        let answer = copy_after(here, &handle, &copy, mapping, |copied| {
            let handle = hex(&here.export(copied)?.to_bytes());
            // The process may have ended.
            let _ = writeln!(producer.input.as_ref().unwrap(), "handle={handle}");
            Ok(())
        });
        match answer {
            Ok(()) => assert!(copy.as_slice().unwrap().iter().all(|byte| *byte == value)),
            Err(Error::ExporterGone(_) | Error::Unreachable { .. }) => return (number, false),
            Err(Error::LevelZero(error)) if error.is_of_producer() => {
                let _ = here.queue.wait();
                return (number, true);
            }
            Err(error) => panic!("{error}"),
        }
    }
    (most, false)
}

/// Copies after another process's event, and calls `submitted` before the copy is complete.
fn copy_after(
    here: &Here,
    handle: &IpcEventHandle,
    to: &HostMemory,
    from: &Mapping,
    submitted: impl FnOnce(&Event) -> Result<(), Error>,
) -> Result<(), Error> {
    let filled = handle.open(&here.queue)?;
    let queue = here.queue.depends_on(std::slice::from_ref(&filled))?;
    let (to, from) = (to.as_ptr().cast_mut().cast(), from.as_ptr());
    // SAFETY: the callers keep both until the copy is complete, and the other process does not write before.
    let copied = unsafe { queue.copy_raw(to, from, SIZE, Completion::Event) }?.unwrap();
    assert!(copied.is_submitted(), "the device waits, not the host");
    submitted(&copied)?;
    assert!(copied.wait(Some(LONG))?, "a wait without an end");
    Ok(())
}

#[test]
fn no_handoff_is_early() {
    let most = count("ZEUSM_TEST_HANDOFFS", 1000);
    let here = Here::new();
    let mut producer = Producer::new("handoffs 0");
    let mapping = mapping(&here, &mut producer);
    let begun = Instant::now();
    let consumed = consume(&here, &mut producer, &mapping, most);
    assert_eq!(consumed, (most, false));
    let each = begun.elapsed() / most as u32;
    println!("{most} handoffs in both directions, {each:?} each");
}

#[test]
fn a_process_that_is_killed_at_any_moment_is_an_error_and_no_hang() {
    let here = Here::new();
    let (mut failed, rounds) = (0, count("ZEUSM_TEST_KILLS", 40));
    for round in 0..rounds {
        // In every other round the process is killed during a wait, as a rule.
        let mut producer = Producer::new(["handoffs 0", "handoffs 5000"][round % 2]);
        let mapping = mapping(&here, &mut producer);
        let id = rustix::process::Pid::from_child(&producer.process);
        let delay = Duration::from_micros(700 * (round as u64 % 40));
        let killer = thread::spawn(move || {
            thread::sleep(delay);
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        });
        failed += usize::from(consume(&here, &mut producer, &mapping, usize::MAX).1);
        killer.join().unwrap();
        producer.kill();
        // What is submitted afterwards is executed.
        assert_complete(&fill(&here.queue, &here.memory(), 1));
    }
    println!("{failed} of {rounds} have ended in a wait");
    assert!(failed > 0);
}

#[test]
fn a_device_waits_for_another_processs_operation() {
    let here = Here::new();
    assert!(are_events_supported(here.device.driver()).unwrap());
    let mut producer = Producer::new("blocked");
    let event = here.open(&producer.event());
    let memory = here.memory();
    let other = Queue::new(&here.context, &here.device).unwrap();
    let dependent = other.depends_on(std::slice::from_ref(&event)).unwrap();
    let native = fill(&dependent, &memory, 1);
    let in_another_context = {
        let other = Here::new();
        let memory = other.memory();
        let following = other.follow(&event, &memory);
        assert!(!following.is_submitted(), "a host task waits");
        (other, memory, following)
    };
    let barrier = here.queue.barrier(std::slice::from_ref(&event)).unwrap();
    assert!(native.is_submitted() && event.is_submitted());
    assert!(!event.wait(Some(Duration::from_millis(50))).unwrap());
    let waiting = [&native, &in_another_context.2, &barrier, &event];
    assert!(waiting.iter().all(|it| !it.is_complete().unwrap()));
    producer.release();
    for event in waiting {
        assert_complete(event);
    }
    let timing = event.timing();
    assert!(matches!(timing, Err(zeusm::Error::TimestampsOfOther)));
    assert!(native.timing().is_ok());
    producer.finish();
    // It outlives the process.
    assert_complete(&event);
    assert_complete(&here.follow(&event, &memory));
}

#[test]
fn the_end_of_a_process_fails_its_event_and_what_waits_for_it() {
    let here = Here::new();
    let memory = here.memory();
    // Another program in the same process does not have the operation, either.
    for (task, release) in [("blocked", false), ("executing", true)] {
        let mut producer = Producer::new(task);
        let process = producer.process.id();
        let handle = producer.event();
        let event = here.open(&handle);
        let direct = here.follow(&event, &memory);
        let behind = fill(&here.queue, &memory, 2);
        let other = Queue::new(&here.context, &here.device).unwrap();
        let indirect = other.depends_on(std::slice::from_ref(&behind)).unwrap();
        let indirect = fill(&indirect, &memory, 3);
        assert!(indirect.is_submitted());
        let ended = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            if release {
                producer.release();
                return producer;
            }
            producer.kill();
            producer
        });
        // A blocking operation behind it ends as well.
        let waited = here.queue.wait();
        assert!(waited.unwrap_err().is_of_producer());
        drop(ended.join().unwrap());
        for event in [&event, &direct, &behind, &indirect] {
            assert_failed(event, process);
        }
        let refused = here.queue.depends_on(std::slice::from_ref(&direct));
        assert!(refused.unwrap_err().is_of_producer());
        assert!(IpcEventHandle::new(&here.queue, &direct).is_err());
        let again = handle.open(&here.queue);
        // Its socket may close a moment after the pipe.
        let is_gone = matches!(
            again,
            Err(Error::ExporterGone(_) | Error::Unreachable { .. })
        );
        assert!(is_gone, "{again:?}");
        assert_complete(&fill(&here.queue, &memory, 1));
    }
}

#[test]
fn a_failure_reaches_a_third_process() {
    let here = Here::new();
    let memory = here.memory();
    let mut producer = Producer::new("blocked");
    let first = producer.process.id();
    let event = here.open(&producer.event());
    // This process is the second, and stands for the third.
    let (second, third) = (here.follow(&event, &memory), Here::new());
    let passed_on = [&event, &second].map(|it| here.export(it).unwrap());
    let opened = passed_on.each_ref().map(|it| third.open(it));
    assert!(opened.iter().all(|it| !it.is_complete().unwrap()));
    producer.kill();
    assert_failed(&second, first);
    for event in &opened {
        assert_failed(event, std::process::id());
    }
    for handle in &passed_on {
        assert_late(handle, &third);
    }
}

#[test]
fn a_failed_operation_fails_in_other_processes() {
    let here = Here::new();
    let mut producer = Producer::new("failing");
    let process = producer.process.id();
    let handle = producer.event();
    let event = here.open(&handle);
    let following = here.follow(&event, &here.memory());
    assert!(!event.is_complete().unwrap());
    producer.release();
    assert_failed(&event, process);
    assert_failed(&following, process);
    assert_late(&handle, &here);
    producer.finish();
}

#[test]
fn a_handle_outlives_the_event_and_the_operation() {
    let here = Here::new();
    let memory = here.memory();
    let (release, event) = here.blocked(&memory);
    let handle = here.export(&event).unwrap();
    drop(event);
    let opened = here.open(&handle);
    assert!(!opened.is_complete().unwrap());
    release.send(()).unwrap();
    assert_complete(&opened);
    here.queue.wait().unwrap();
    for _ in 0..3 {
        assert_complete(&here.open(&handle));
    }
    let complete = fill(&here.queue, &memory, 1);
    assert_complete(&complete);
    assert_complete(&here.open(&here.export(&complete).unwrap()));
}

#[test]
fn handles_are_checked() {
    let mut here = Here::new();
    let mut memory = here.memory();
    let event = fill(&here.queue, &memory, 1);
    let bytes = here.export(&event).unwrap().to_bytes();
    let edited = |offset: usize| {
        let mut bytes = bytes.clone();
        bytes[offset] ^= 1;
        IpcEventHandle::from_bytes(&checked(bytes))
            .unwrap()
            .open(&here.queue)
            .unwrap_err()
    };
    assert!(matches!(edited(16), Error::AnotherMachine { .. }));
    assert!(matches!(edited(32), Error::AnotherDevice { .. }));
    // The number of the export, the driver's handle, the allocation's id, which is 0, and the tag.
    for offset in [68, 76, 140, 172] {
        assert!(matches!(edited(offset), Error::Forged(_)), "{offset}");
    }
    let answer = IpcHandle::from_bytes(&bytes);
    assert!(matches!(answer, Err(Error::Malformed { .. })));
    here.queue.wait().unwrap();
    let of_memory = IpcHandle::of_memory(&mut memory, 0..1).unwrap();
    let answer = IpcEventHandle::from_bytes(&of_memory.to_bytes());
    assert!(matches!(answer, Err(Error::Malformed { .. })));
    here.queue = Queue::new(&here.context, &here.device).unwrap();
    let gone = {
        let mut producer = Producer::new("complete");
        let handle = producer.event();
        producer.finish();
        handle
    };
    let answer = gone.open(&here.queue);
    assert!(matches!(answer, Err(Error::ExporterGone(_))), "{answer:?}");
}

#[test]
fn no_descriptor_is_left_once_the_operation_is_complete() {
    child::alone(&[], || {
        let here = Here::new();
        let memory = here.memory();
        let files = || fs::read_dir("/proc/self/fd").unwrap().count();
        let hand_over = || {
            let (release, event) = here.blocked(&memory);
            let handle = here.export(&event).unwrap();
            let opened = here.open(&handle);
            release.send(()).unwrap();
            assert_complete(&opened);
            drop(opened);
            here.queue.wait().unwrap();
        };
        // The first ones start the server, and grow pools of events.
        (0..3).for_each(|_| hand_over());
        let before = files();
        (0..20).for_each(|_| hand_over());
        let begun = Instant::now();
        // A thread of the CPU runtime has an opened one for a moment longer.
        while files() > before {
            assert!(begun.elapsed() < LONG);
            thread::sleep(Duration::from_millis(1));
        }
    });
}
