//! Checks of what memory holds.

/// Checks all bytes; a failure names the first wrong one and how many there are.
#[track_caller]
pub fn check(bytes: &[u8], expected: impl Fn(usize) -> u8) {
    let is_wrong = |(index, byte): &(usize, &u8)| **byte != expected(*index);
    let mut wrong = bytes.iter().enumerate().filter(is_wrong);
    if let Some((index, byte)) = wrong.next() {
        let (others, size, right) = (wrong.count(), bytes.len(), expected(index));
        panic!(
            "byte {index} of {size} is {byte} instead of {right}, and {others} others are wrong"
        );
    }
}
