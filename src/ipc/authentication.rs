//! Message authentication: a handle has a tag that only the exporting process can compute.

use siphasher::sip128::SipHasher24;

/// The secret key of a process, which never leaves it: other processes have it verify handles.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; Key::LENGTH]);

/// A keyed hash of a handle's other bytes: SipHash-2-4 with 128 bits, which is designed to authenticate short messages.
pub type Tag = [u8; 16];

impl Key {
    /// The length in bytes.
    pub const LENGTH: usize = 16;

    /// The tag of `content`.
    pub fn tag(&self, content: &[u8]) -> Tag {
        SipHasher24::new_with_key(&self.0).hash(content).as_bytes()
    }

    /// Whether `tag` is that of `content`, in constant time.
    pub fn verify(&self, content: &[u8], tag: &Tag) -> bool {
        let expected = self.tag(content);
        let differences = expected.iter().zip(tag).map(|(one, other)| one ^ other);
        differences.fold(0, |all, one| all | one) == 0
    }
}
