//! The line of an instruction, from a code object's table of locations (CPython 3.11 and later).

/// Bytes of a unit of instructions.
const UNIT: usize = 2;

/// The line of the instruction at `offset`, or the first line of the code if the table has none.
pub fn line(table: &[u8], first: i32, offset: usize) -> u32 {
    let (mut line, mut end, mut rest) = (first, 0, table);
    let mut found = first;
    while let Some((&head, data)) = rest.split_first() {
        let length = data.iter().take_while(|byte| **byte & 0x80 == 0).count();
        let (data, next) = data.split_at(length);
        let kind = head >> 3 & 15;
        line = line.saturating_add(delta(kind, data));
        end += (usize::from(head & 7) + 1) * UNIT;
        // Some instructions are of no line.
        if kind != 15 {
            found = line;
        }
        if offset < end {
            return found.max(0).cast_unsigned();
        }
        rest = next;
    }
    first.max(0).cast_unsigned()
}

/// By how many lines an entry of this kind advances.
fn delta(kind: u8, data: &[u8]) -> i32 {
    match kind {
        13 | 14 => signed(data),
        10..=12 => i32::from(kind) - 10,
        _ => 0,
    }
}

/// A number of 6 bits a byte, the least significant first, whose last bit is the sign.
fn signed(data: &[u8]) -> i32 {
    let mut value = 0_u32;
    for (index, byte) in data.iter().take(5).enumerate() {
        value |= u32::from(byte & 0x3f) << (6 * index);
        if byte & 0x40 == 0 {
            break;
        }
    }
    let amount = (value >> 1).cast_signed();
    if value & 1 == 0 { amount } else { -amount }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_the_table() {
        let head = |kind: u8, units: u8| 0x80 | kind << 3 | (units - 1);
        let table = [
            head(15, 1), // of no line
            head(0, 2),
            0x12, // of the first line
            head(11, 1),
            3,
            4, // one line on
            head(13, 3),
            0x41,
            0x01, // 32 lines back
            head(14, 1),
            20,
            0,
            1,
            1, // 10 lines on
        ];
        let lines: Vec<_> = (0..10).map(|unit| line(&table, 50, unit * UNIT)).collect();
        assert_eq!(lines, [50, 50, 50, 51, 19, 19, 19, 29, 50, 50]);
        assert_eq!(line(&table, 50, usize::MAX), 50);
        assert_eq!(line(&[], 7, 0), 7);
    }
}
