//! The protocol between client and compiler: each message is its length in 8 bytes, little-endian, and its fields as postcard
//! encodes them.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Sends a message.
///
/// # Errors
/// The other end's.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(&bytes)
}

/// Receives a message of [`send`].
///
/// # Errors
/// The other end's, and that of a message which is no `T`.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    // The buffer grows with the bytes received, so a length alone allocates nothing.
    let mut bytes = Vec::new();
    from.take(u64::from_le_bytes(length))
        .read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
