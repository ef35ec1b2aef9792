//! The protocol between client and compiler: numbers of 8 bytes, little-endian; texts and blobs as a length and bytes.

use std::io::{self, Read, Write};

use thiserror::Error;

/// The maximal length of a blob in bytes, which bounds the memory that a broken peer can request.
const LONGEST: u64 = 1 << 30;

/// A module to build: one unit, or several to be linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The modules that it is made of.
    pub units: Vec<Unit>,
}

/// One SPIR-V module and how to compile it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// The SPIR-V, in the machine's byte order.
    pub code: Vec<u8>,
    /// OpenCL build options.
    pub options: String,
    /// The flags that the program passed, which the compiler does not need.
    pub flags: String,
    /// Specialisation constants by SpecId, as bytes of their types.
    pub specialisation: Vec<(u32, Vec<u8>)>,
}

/// The failure of a build.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The compiler reported an error.
    #[error("{0}")]
    Refused(String),
    /// The compiler crashed.
    #[error("the compiler did not survive this module: {0}")]
    Crashed(String),
    /// There is no compiler, or it cannot be started.
    #[error("{0}")]
    Unavailable(String),
}

impl Job {
    /// The same modules, to be compiled as they are.
    pub fn without_optimisation(&self) -> Self {
        let mut job = self.clone();
        for unit in &mut job.units {
            unit.options.push_str(" -cl-opt-disable");
        }
        job
    }

    /// Writes the job as one message.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write_number(to, self.units.len() as u64)?;
        self.units.iter().try_for_each(|unit| unit.write(to))
    }

    /// Reads a job of [`Job::write`].
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let count = read_number(from)?;
        let units = (0..count)
            .map(|_| Unit::read(from))
            .collect::<io::Result<_>>()?;
        Ok(Self { units })
    }
}

impl Unit {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write_blob(to, &self.code)?;
        write_blob(to, self.options.as_bytes())?;
        write_blob(to, self.flags.as_bytes())?;
        write_number(to, self.specialisation.len() as u64)?;
        for (id, value) in &self.specialisation {
            write_number(to, u64::from(*id))?;
            write_blob(to, value)?;
        }
        Ok(())
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let code = read_blob(from)?;
        let mut text = || String::from_utf8(read_blob(from)?).map_err(io::Error::other);
        let (options, flags) = (text()?, text()?);
        let count = read_number(from)?;
        let constant = |_| {
            let id = u32::try_from(read_number(from)?).map_err(io::Error::other)?;
            Ok((id, read_blob(from)?))
        };
        let specialisation = (0..count).map(constant).collect::<io::Result<_>>()?;
        Ok(Self {
            code,
            options,
            flags,
            specialisation,
        })
    }
}

/// The outcome of a job as a message: the device's code, or why there is none.
pub fn write_outcome(to: &mut impl Write, outcome: &Result<Vec<u8>, Failure>) -> io::Result<()> {
    let (kind, blob) = match outcome {
        Ok(binary) => (0, binary.as_slice()),
        Err(Failure::Refused(words)) => (1, words.as_bytes()),
        Err(Failure::Crashed(words)) => (2, words.as_bytes()),
        Err(Failure::Unavailable(words)) => (3, words.as_bytes()),
    };
    write_number(to, kind)?;
    write_blob(to, blob)
}

/// Reads the outcome of [`write_outcome`].
pub fn read_outcome(from: &mut impl Read) -> io::Result<Result<Vec<u8>, Failure>> {
    let (kind, blob) = (read_number(from)?, read_blob(from)?);
    let words = |blob| String::from_utf8_lossy(blob).into_owned();
    Ok(match kind {
        0 => Ok(blob),
        1 => Err(Failure::Refused(words(&blob))),
        2 => Err(Failure::Crashed(words(&blob))),
        3 => Err(Failure::Unavailable(words(&blob))),
        _ => return Err(io::Error::other("an outcome of no known kind")),
    })
}

fn write_number(to: &mut impl Write, number: u64) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())
}

fn read_number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Writes a length and the bytes.
pub fn write_blob(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    write_number(to, bytes.len() as u64)?;
    to.write_all(bytes)
}

/// Reads the bytes of [`write_blob`].
pub fn read_blob(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_number(from)?;
    if length > LONGEST {
        return Err(io::Error::other("a message longer than any module"));
    }
    // The buffer grows with the bytes received, so a length alone allocates nothing.
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn jobs_arrive_as_they_were_sent(
            code: Vec<u8>,
            options: String,
            flags: String,
            specialisation: Vec<(u32, Vec<u8>)>,
            noise: Vec<u8>,
        ) {
            let unit = Unit { code, options, flags, specialisation };
            let job = Job { units: vec![unit.clone(), unit] };
            let mut sent = Vec::new();
            job.write(&mut sent).unwrap();
            prop_assert_eq!(Job::read(&mut sent.as_slice()).unwrap(), job);
            if let Some(last) = sent.len().checked_sub(1) {
                prop_assert!(Job::read(&mut &sent[..last]).is_err());
            }
            let _ = Job::read(&mut noise.as_slice());
        }

        #[test]
        fn outcomes_arrive_as_they_were_sent(binary: Vec<u8>, words: String) {
            for outcome in [
                Ok(binary),
                Err(Failure::Refused(words.clone())),
                Err(Failure::Crashed(words.clone())),
                Err(Failure::Unavailable(words)),
            ] {
                let mut sent = Vec::new();
                write_outcome(&mut sent, &outcome).unwrap();
                prop_assert_eq!(read_outcome(&mut sent.as_slice()).unwrap(), outcome);
            }
        }
    }
}
