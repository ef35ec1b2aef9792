//! Bytes in a file, with what tells that they are a module's and whole.

/// The magic number: the name and the version of the format.
const MAGIC: &[u8; 16] = b"zeusm-cpu code 3";

/// The bytes behind the magic number and their checksum.
pub fn seal(body: &[u8]) -> Vec<u8> {
    let checksum = crc32fast::hash(body).to_le_bytes();
    [MAGIC.as_slice(), &checksum, body].concat()
}

/// The bytes of [`seal`].
///
/// # Errors
/// What is wrong with the file, in words.
pub fn unseal(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let body = bytes
        .strip_prefix(MAGIC)
        .ok_or("it does not begin as one")?;
    let (checksum, body) = body.split_first_chunk().ok_or("it is cut short")?;
    if crc32fast::hash(body) == u32::from_le_bytes(*checksum) {
        Ok(body)
    } else {
        Err("it is damaged, its checksum is wrong")
    }
}
