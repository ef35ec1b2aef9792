//! MI_MATH: the command streamer's ALU on the general purpose registers, as far as the driver uses it.
//!
//! Instructions and operands: PRM for Lunar Lake, volume 2a, "MI_MATH" and "MI_MATH_ALU_INST"; Linux,
//! `drivers/gpu/drm/xe/instructions/xe_alu_commands.h`.

use super::registers::Registers;
use crate::report::not_simulated;

const NOOP: u32 = 0x000;
const LOAD: u32 = 0x080;
const ADD: u32 = 0x100;
const AND: u32 = 0x102;
const STORE: u32 = 0x180;

const SOURCE_A: u32 = 0x20;
const SOURCE_B: u32 = 0x21;
const ACCUMULATOR: u32 = 0x31;
const GENERAL_REGISTERS: u32 = 16;

#[derive(Default)]
struct Alu {
    a: u64,
    b: u64,
    accumulator: u64,
}

impl Alu {
    fn read(&self, operand: u32, registers: &Registers) -> u64 {
        match operand {
            0..GENERAL_REGISTERS => registers.general(operand),
            ACCUMULATOR => self.accumulator,
            _ => not_simulated(format_args!("MI_MATH operand {operand:#x}")),
        }
    }

    /// Stores an operand in a general purpose register.
    fn store(&self, register: u32, operand: u32, registers: &mut Registers) {
        let value = self.read(operand, registers);
        match register {
            0..GENERAL_REGISTERS => registers.set_general(register, value),
            _ => not_simulated(format_args!("MI_MATH store into {register:#x}")),
        }
    }

    fn load(&mut self, source: u32, value: u64) {
        match source {
            SOURCE_A => self.a = value,
            SOURCE_B => self.b = value,
            _ => not_simulated(format_args!("MI_MATH load into {source:#x}")),
        }
    }

    fn compute(&mut self, opcode: u32) {
        self.accumulator = match opcode {
            ADD => self.a.wrapping_add(self.b),
            AND => self.a & self.b,
            _ => not_simulated(format_args!("MI_MATH opcode {opcode:#x}")),
        };
    }
}

/// Executes the ALU instructions of one MI_MATH.
pub(super) fn run(instructions: &[u32], registers: &mut Registers) {
    let mut alu = Alu::default();
    for instruction in instructions {
        let (opcode, first, second) = (
            instruction >> 20,
            instruction >> 10 & 0x3ff,
            instruction & 0x3ff,
        );
        match opcode {
            NOOP => {}
            LOAD => alu.load(first, alu.read(second, registers)),
            STORE => alu.store(first, second, registers),
            _ => alu.compute(opcode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_masks() {
        let mut registers = Registers::default();
        registers.set_general(0, u64::MAX);
        registers.set_general(1, 1);
        let load = |source: u32, register: u32| LOAD << 20 | source << 10 | register;
        let store = |register: u32, operand: u32| STORE << 20 | register << 10 | operand;
        run(
            &[
                load(SOURCE_A, 0),
                load(SOURCE_B, 1),
                ADD << 20,
                store(2, ACCUMULATOR),
                AND << 20,
                store(3, ACCUMULATOR),
            ],
            &mut registers,
        );
        assert_eq!((registers.general(2), registers.general(3)), (0, 1));
        assert_eq!(registers.get(0x2600 + 8), 1);
    }
}
