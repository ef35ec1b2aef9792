//! Checks of what memory holds.

/// Checks that the bytes are the expected ones; a failure names the first wrong one and how many there are.
#[track_caller]
pub fn check(bytes: &[u8], expected: &[u8]) {
    if bytes == expected {
        return;
    }
    assert_eq!(bytes.len(), expected.len(), "of the lengths");
    let is_wrong = |index: &usize| bytes[*index] != expected[*index];
    let wrong: Vec<_> = (0..bytes.len()).filter(is_wrong).collect();
    let (first, count, all) = (wrong[0], wrong.len(), bytes.len());
    let (found, right) = (bytes[first], expected[first]);
    panic!(
        "{count} of {all} bytes are wrong: the first is byte {first}, {found} instead of {right}"
    );
}
