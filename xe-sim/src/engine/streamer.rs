//! The command streamer: fetches commands from GPU memory and executes them in order.

use std::thread;
use std::time::Duration;

use super::command::{Command, Entry, LONGEST, address, wide};
use super::registers::{Registers, timestamp};
use super::state::State;
use super::table::{SECOND_LEVEL, decode};
use super::{alu, blitter};
use crate::builtin::{self, Bases, KernelError};
use crate::faults::{self, Loss, Stop};
use crate::memory::{AddressSpace, PageFault, at_most};
use crate::report::{log, not_simulated};

/// The maximum nesting depth of batch buffers.
const DEEPEST: usize = 8;
/// The number of semaphore polls before the thread sleeps between polls, and the maximum sleep.
const SPINS: u32 = 200;
const LONGEST_SLEEP_US: u32 = 200;
/// An address that is never bound, reported by injected page faults.
const NOWHERE: u64 = 0xdead_0000;

/// The reason why a batch stopped before its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// The queue is being destroyed or is banned.
    Stopped,
    Hung,
    Lost(Loss),
    /// An access or a kernel that bans the queue.
    Failed(KernelError),
}

impl<E: Into<KernelError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn register(dword: u32) -> u32 {
    dword & 0x7f_fffc
}

/// The control flow after a command.
enum Next {
    Command,
    Jump(u64),
    Call(u64),
    Return,
}

pub(super) struct Streamer<'a> {
    engine: &'a State,
    registers: Registers,
    bases: Bases,
}

impl<'a> Streamer<'a> {
    pub(super) fn new(engine: &'a State) -> Self {
        Self {
            engine,
            registers: Registers::default(),
            bases: Bases::default(),
        }
    }

    fn space(&self) -> &'a AddressSpace {
        &self.engine.space
    }

    /// Executes a batch until it ends or stops.
    pub(super) fn run(&mut self, batch: u64) -> Result<(), Halt> {
        let mut at = batch;
        let mut callers = Vec::with_capacity(DEEPEST);
        let mut dwords = [0; LONGEST];
        loop {
            let entry = self.fetch(at, &mut dwords)?;
            let length = entry.dwords(dwords[0]);
            let after = at + 4 * length as u64;
            at = match self.execute(entry, &dwords[..length])? {
                Next::Command => after,
                Next::Jump(to) => to,
                Next::Call(_) if callers.len() == DEEPEST => {
                    not_simulated(format_args!("batches nested deeper than {DEEPEST}"))
                }
                Next::Call(to) => {
                    callers.push(after);
                    to
                }
                Next::Return => match callers.pop() {
                    Some(caller) => caller,
                    None => return Ok(()),
                },
            };
        }
    }

    fn fetch(&self, at: u64, dwords: &mut [u32; LONGEST]) -> Result<&'static Entry, Halt> {
        let header = self.space().load(at)?;
        let Some(entry) = decode(header) else {
            not_simulated(format_args!("command {header:#010x} at {at:#x}"))
        };
        if !entry.command.runs_on(self.engine.class) {
            not_simulated(format_args!(
                "{} on an engine of the class {:?}, at {at:#x}",
                entry.name, self.engine.class
            ));
        }
        if let Some(reason) = entry.wrong_length(header) {
            not_simulated(format_args!("{reason}, at {at:#x}"));
        }
        dwords[0] = header;
        for index in 1..entry.dwords(header) {
            dwords[index] = self.space().load(at + 4 * index as u64)?;
        }
        if let Some(reason) = entry.unknown_bits(&dwords[..entry.dwords(header)]) {
            not_simulated(format_args!("{reason}, at {at:#x}"));
        }
        if entry.command != Command::Ignored {
            log(format_args!(
                "{at:#x} {} {:x?}",
                entry.name,
                &dwords[..entry.dwords(header)]
            ));
        }
        Ok(entry)
    }

    fn execute(&mut self, entry: &Entry, dwords: &[u32]) -> Result<Next, Halt> {
        match entry.command {
            Command::Ignored => {}
            Command::BatchBufferEnd => return Ok(Next::Return),
            Command::BatchBufferStart => return self.batch_start(dwords),
            Command::SemaphoreWait => self.semaphore_wait(dwords)?,
            Command::StoreDataImm => self.space().store(address(dwords, 1), dwords[3])?,
            Command::StoreQwordImm => {
                self.space()
                    .store_wide(address(dwords, 1), wide(dwords, 3))?;
            }
            Command::LoadRegisterImm => {
                for pair in dwords[1..].as_chunks::<2>().0 {
                    self.registers.set(register(pair[0]), pair[1]);
                }
            }
            Command::LoadRegisterReg => {
                let word = self.registers.get(register(dwords[1]));
                self.registers.set(register(dwords[2]), word);
            }
            Command::StoreRegisterMem => {
                let word = self.registers.get(register(dwords[1]));
                faults::delay();
                self.space().store(address(dwords, 2), word)?;
            }
            Command::Math => alu::run(&dwords[1..], &mut self.registers),
            Command::FlushDw => self.flush(entry, dwords)?,
            Command::PipeControl => {
                self.post_sync(
                    entry,
                    dwords[1] >> 14 & 3,
                    address(dwords, 2),
                    wide(dwords, 4),
                )?;
            }
            Command::StateBaseAddress => self.bases.set(dwords),
            Command::ComputeWalker => {
                let begun = timestamp();
                self.work(entry, || builtin::walk(self.space(), &self.bases, dwords))?;
                self.walker_post_sync(entry, dwords, begun)?;
            }
            Command::MemCopy => self.work(entry, || blitter::copy(self.space(), dwords))?,
            Command::MemSet => self.work(entry, || blitter::set(self.space(), dwords))?,
        }
        Ok(Next::Command)
    }

    fn batch_start(&self, dwords: &[u32]) -> Result<Next, Halt> {
        if self.engine.stops() {
            return Err(Halt::Stopped);
        }
        let to = address(dwords, 1);
        Ok(if dwords[0] & SECOND_LEVEL != 0 {
            Next::Call(to)
        } else {
            Next::Jump(to)
        })
    }

    fn semaphore_wait(&self, dwords: &[u32]) -> Result<(), Halt> {
        let wanted = dwords[1];
        let mut looks = 0u32;
        loop {
            let word = if dwords[0] >> 16 & 1 == 1 {
                self.registers.get(register(dwords[2]))
            } else {
                self.space().load(address(dwords, 2))?
            };
            let passed = match dwords[0] >> 12 & 7 {
                0 => word > wanted,
                1 => word >= wanted,
                2 => word < wanted,
                3 => word <= wanted,
                4 => word == wanted,
                5 => word != wanted,
                other => not_simulated(format_args!("MI_SEMAPHORE_WAIT by comparison {other}")),
            };
            if passed {
                return Ok(());
            }
            if self.engine.stops() {
                return Err(Halt::Stopped);
            }
            looks += 1;
            match looks.checked_sub(SPINS) {
                None => thread::yield_now(),
                Some(more) => {
                    let pause = (20 + more / 10).min(LONGEST_SLEEP_US);
                    thread::sleep(Duration::from_micros(pause.into()));
                }
            }
        }
    }

    /// The post-sync write of MI_FLUSH_DW.
    fn flush(&self, entry: &Entry, dwords: &[u32]) -> Result<(), Halt> {
        let operation = dwords[0] >> 14 & 3;
        match dwords {
            [_, _, _, _, _] => {
                self.post_sync(entry, operation, wide(dwords, 1) & !7, wide(dwords, 3))
            }
            _ if operation == 0 => Ok(()),
            _ => not_simulated(format_args!(
                "{} of {} dwords with post-sync operation {operation}",
                entry.name,
                dwords.len()
            )),
        }
    }

    /// The post-sync write of a command. Commands execute in order, so all earlier work is already complete.
    fn post_sync(&self, entry: &Entry, operation: u32, at: u64, value: u64) -> Result<(), Halt> {
        match operation {
            0 => {}
            1 => {
                faults::delay();
                self.space().store_wide(at, value)?;
            }
            3 => self.space().store_wide(at, timestamp())?,
            other => not_simulated(format_args!(
                "{} with post-sync operation {other}",
                entry.name
            )),
        }
        Ok(())
    }

    /// The post-sync write of COMPUTE_WALKER: a value, or four timestamps (context and global start, context and global
    /// end).
    fn walker_post_sync(&self, entry: &Entry, dwords: &[u32], begun: u64) -> Result<(), Halt> {
        let (at, operation) = (wide(dwords, 28), dwords[27] & 3);
        if operation != 3 {
            return self.post_sync(entry, operation, at, wide(dwords, 30));
        }
        let ended = timestamp() + 1;
        for (index, time) in [begun, begun, ended, ended].into_iter().enumerate() {
            if self.engine.model.wide_timestamps {
                self.space().store_wide(at + 8 * index as u64, time)?;
            } else {
                self.space().store(at + 4 * index as u64, time as u32)?;
            }
        }
        Ok(())
    }

    /// Executes a copy, fill or kernel with the injected delay. An injected stop takes effect after the first bytes.
    fn work<E: Into<Halt>>(
        &self,
        entry: &Entry,
        run: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), Halt> {
        faults::delay();
        let Some(stop) = faults::stops() else {
            return run().map_err(Into::into);
        };
        log(format_args!("{} stops on purpose: {stop:?}", entry.name));
        // The injected stop replaces the result of the truncated operation.
        let _ = at_most(faults::BEFORE_STOP, run);
        Err(match stop {
            Stop::Hang => Halt::Hung,
            Stop::Lost(how) => Halt::Lost(how),
            Stop::Fault => Halt::from(PageFault {
                address: NOWHERE,
                access: entry.name,
            }),
        })
    }
}
