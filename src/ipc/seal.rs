//! The seal of a handle: what tells the bytes that a process gave out from any others.

use std::fmt;

use siphasher::sip128::SipHasher24;

/// The secret that a process seals its handles with. It is in no handle: those who may look into the process read it
/// there, all others have the process compare.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; Key::LENGTH]);

/// A keyed hash of a handle's other bytes: SipHash-2-4 of 128 bits, which is made for authenticating short messages.
pub type Seal = [u8; 16];

impl Key {
    /// How many bytes it has.
    pub const LENGTH: usize = 16;

    /// The seal of `content`.
    pub fn seal(&self, content: &[u8]) -> Seal {
        SipHasher24::new_with_key(&self.0).hash(content).as_bytes()
    }

    /// Whether `seal` is that of `content`, in a time that does not tell how much of it is right.
    pub fn fits(&self, content: &[u8], seal: &Seal) -> bool {
        let right = self.seal(content);
        let differences = right.iter().zip(seal).map(|(one, other)| one ^ other);
        differences.fold(0, |all, one| all | one) == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}
