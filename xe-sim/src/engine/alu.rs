//! MI_MATH: the command streamer's ALU on the general purpose registers.
//!
//! Instructions and operands: PRM for Lunar Lake, volume 2a, "MI_MATH" and "MI_MATH_ALU_INST"; Linux,
//! `drivers/gpu/drm/xe/instructions/xe_alu_commands.h`.

use super::registers::Registers;
use crate::report::not_simulated;

const NOOP: u32 = 0x000;
const LOAD: u32 = 0x080;
const LOAD_INVERTED: u32 = 0x480;
const LOAD_0: u32 = 0x081;
const LOAD_1: u32 = 0x481;
const ADD: u32 = 0x100;
const SUB: u32 = 0x101;
const AND: u32 = 0x102;
const OR: u32 = 0x103;
const XOR: u32 = 0x104;
const SHIFT_LEFT: u32 = 0x105;
const SHIFT_RIGHT: u32 = 0x106;
const STORE: u32 = 0x180;
const STORE_INVERTED: u32 = 0x580;

const SOURCE_A: u32 = 0x20;
const SOURCE_B: u32 = 0x21;
const ACCUMULATOR: u32 = 0x31;
const ZERO_FLAG: u32 = 0x32;
const CARRY_FLAG: u32 = 0x33;
const GENERAL_REGISTERS: u32 = 16;

#[derive(Default)]
struct Alu {
    a: u64,
    b: u64,
    accumulator: u64,
    zero: bool,
    carry: bool,
}

impl Alu {
    fn read(&self, operand: u32, registers: &Registers) -> u64 {
        let all_ones = |flag: bool| if flag { u64::MAX } else { 0 };
        match operand {
            0..GENERAL_REGISTERS => registers.general(operand),
            ACCUMULATOR => self.accumulator,
            ZERO_FLAG => all_ones(self.zero),
            CARRY_FLAG => all_ones(self.carry),
            _ => not_simulated(format_args!("MI_MATH operand {operand:#x}")),
        }
    }

    /// Stores an operand in a general purpose register, inverted with the bits of `inversion`.
    fn store(&self, register: u32, operand: u32, inversion: u64, registers: &mut Registers) {
        let value = self.read(operand, registers) ^ inversion;
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
        let (result, carry) = match opcode {
            ADD => self.a.overflowing_add(self.b),
            SUB => self.a.overflowing_sub(self.b),
            AND => (self.a & self.b, false),
            OR => (self.a | self.b, false),
            XOR => (self.a ^ self.b, false),
            SHIFT_LEFT => (self.a << (self.b & 63), false),
            SHIFT_RIGHT => (self.a >> (self.b & 63), false),
            _ => not_simulated(format_args!("MI_MATH opcode {opcode:#x}")),
        };
        (self.accumulator, self.carry, self.zero) = (result, carry, result == 0);
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
            LOAD_INVERTED => alu.load(first, !alu.read(second, registers)),
            LOAD_0 => alu.load(first, 0),
            LOAD_1 => alu.load(first, u64::MAX),
            STORE => alu.store(first, second, 0, registers),
            STORE_INVERTED => alu.store(first, second, u64::MAX, registers),
            _ => alu.compute(opcode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_flags() {
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
                store(3, CARRY_FLAG),
                store(4, ZERO_FLAG),
            ],
            &mut registers,
        );
        assert_eq!(registers.general(2), 0);
        assert_eq!(registers.general(3), u64::MAX);
        assert_eq!(registers.general(4), u64::MAX);
        assert_eq!(registers.get(0x2600 + 8), 1);
    }
}
