// SPDX-License-Identifier: Apache-2.0
//! Captures as chunks of framed packets: pcap or pcapng, plain or compressed, from anything that can be read.
//!
//! A chunk owns its bytes, so that chunks can be decoded on several threads. Memory is one buffer per chunk under
//! way, whatever the file says: lengths are checked against `chunk::MAX_PACKET` before any byte of them is waited for.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use crate::error::{Error, Layer, Result};
use crate::read::chunk::{Chunk, Record, Step};
use crate::read::{pcap, pcapng};

/// Bytes of a chunk: so many that handing one over costs nothing, so few that it stays in a core's cache until it is decoded.
pub const CHUNK: usize = 1024 * 1024;
/// Of the first one; each is at most twice the one before, so that all threads soon have work.
const FIRST: usize = CHUNK / 16;
/// Packets of a chunk, about: each may end a connection, whose rows wait for the end of the chunk.
const PACKETS: usize = 10_000;
enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

pub struct Capture {
    input: Box<dyn Read + Send>,
    compressed: bool,
    format: Option<Format>,
    /// Of the next chunk.
    size: usize,
    /// Bytes read but not framed yet.
    rest: Vec<u8>,
    /// Offset of `rest[0]`.
    offset: u64,
    ended: bool,
    /// Return what one read gave, instead of waiting for a whole chunk.
    live: bool,
    failed: Option<Error>,
}

/// Counts nothing, only gives back the bytes looked at for the magic number.
type Replayed<R> = Chain<Cursor<Vec<u8>>, R>;

fn look<R: Read>(mut input: R, want: usize) -> io::Result<(Vec<u8>, Replayed<R>)> {
    let mut head = Vec::with_capacity(want);
    input.by_ref().take(want as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(input)))
}

impl Capture {
    pub fn open(path: &Path, live: bool) -> Result<Self> {
        let fail = |error: io::Error| Error::outside(0, Layer::Io, format!("{}: {error}", path.display()));
        if path.as_os_str() == "-" {
            return Self::from_reader(io::stdin(), live);
        }
        let file = File::open(path).map_err(fail)?;
        if file.metadata().map_err(fail)?.is_dir() {
            return Err(Error::outside(0, Layer::Io, format!("{}: is a folder, not a capture", path.display())));
        }
        Self::from_reader(file, live)
    }

    pub fn from_reader<R: Read + Send + 'static>(input: R, live: bool) -> Result<Self> {
        let (head, input) = look(input, 4).map_err(|e| Error::outside(0, Layer::Io, e))?;
        let (input, compressed): (Box<dyn Read + Send>, bool) = match head.as_slice() {
            [0x1f, 0x8b, ..] => (Box::new(flate2::read::MultiGzDecoder::new(input)), true),
            // The library refuses windows above 128 MiB by itself.
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let frames = zstd::stream::read::Decoder::new(input);
                (Box::new(frames.map_err(|e| Error::outside(0, Layer::Compression, e))?), true)
            }
            _ => (Box::new(input), false),
        };
        Ok(Capture {
            input,
            compressed,
            format: None,
            size: FIRST,
            rest: Vec::new(),
            offset: 0,
            ended: false,
            live,
            failed: None,
        })
    }

    /// The next packets into `chunk`, whose buffers are used again. `Ok(false)` at the end. After an error the packets
    /// before it are in `chunk` of the call before, and every further call gives the error again.
    pub fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.records.clear();
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        loop {
            chunk.offset = self.offset;
            let (have, read) = self.fill(&mut chunk.data);
            let used = self.frame(chunk, have);
            let (used, framing) = match used {
                Ok(used) => (used, None),
                Err((used, error)) => (used, Some(error)),
            };
            self.rest.extend_from_slice(chunk.data.get(used..have).unwrap_or_default());
            self.offset += used as u64;
            if let Some(wanted) = (used * PACKETS).checked_div(chunk.records.len()) {
                self.size = wanted.clamp(FIRST, CHUNK.min(self.size * 2));
            }
            let failed = framing.or_else(|| read.err()).or_else(|| self.unfinished());
            if let Some(error) = failed {
                self.failed = Some(error.clone());
                return if chunk.records.is_empty() { Err(error) } else { Ok(true) };
            }
            if !chunk.records.is_empty() {
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
        }
    }

    /// Moves what is left over to the front of `data` and reads until the chunk is full or the input ends; gives the bytes.
    fn fill(&mut self, data: &mut Vec<u8>) -> (usize, Result<()>) {
        // A packet larger than a chunk grows the buffer step by step, as its bytes really come in.
        let mut have = self.rest.len();
        let full = self.size.max(have + self.size / 4);
        if data.len() < full {
            data.resize(full, 0);
        }
        for (to, from) in data.iter_mut().zip(self.rest.drain(..)) {
            *to = from;
        }
        let mut result = Ok(());
        while have < full {
            match self.input.read(data.get_mut(have..full).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    // What the operating system refuses has a number; the rest is the decompressor's.
                    let broken = self.compressed && e.raw_os_error().is_none();
                    let layer = if broken { Layer::Compression } else { Layer::Io };
                    self.ended = true;
                    result = Err(Error::outside(self.offset + have as u64, layer, e));
                    break;
                }
            }
            if self.live {
                break;
            }
        }
        (have, result)
    }

    /// The error for bytes left over at the end of the input.
    fn unfinished(&mut self) -> Option<Error> {
        if !self.ended || (self.rest.is_empty() && self.format.is_some()) {
            return None;
        }
        let seen = self.rest.len() as u64;
        let (layer, needed) = match &mut self.format {
            None => (Layer::PcapHeader, pcap::HEADER as u64),
            Some(Format::Pcap(header)) => (Layer::PcapRecord, needed(header.step(&self.rest, 0, self.offset))),
            Some(Format::Pcapng(section)) => (Layer::PcapngBlock, needed(section.step(&self.rest, 0, self.offset))),
        };
        Some(Error::Truncated { offset: self.offset, layer, needed, seen })
    }

    /// Frames the first `have` bytes of a chunk; gives those used, also with an error.
    fn frame(&mut self, chunk: &mut Chunk, have: usize) -> std::result::Result<usize, (usize, Error)> {
        let (data, records) = (chunk.data.get(..have).unwrap_or_default(), &mut chunk.records);
        let mut at = 0;
        if self.format.is_none() {
            let (format, used) = match first(data, self.offset).map_err(|e| (0, e))? {
                Some(found) => found,
                None => return Ok(0),
            };
            at = used;
            self.format = Some(format);
        }
        let base = self.offset;
        match &mut self.format {
            Some(Format::Pcap(header)) => walk(data, at, records, |data, at| header.step(data, at, base)),
            Some(Format::Pcapng(section)) => walk(data, at, records, |data, at| section.step(data, at, base)),
            None => Ok(at),
        }
    }
}

fn needed(step: Result<Step>) -> u64 {
    match step {
        Ok(Step::More(n)) => n as u64,
        _ => 0,
    }
}

#[inline(always)]
fn walk(
    data: &[u8],
    mut at: usize,
    records: &mut Vec<Record>,
    mut step: impl FnMut(&[u8], usize) -> Result<Step>,
) -> std::result::Result<usize, (usize, Error)> {
    loop {
        match step(data, at).map_err(|e| (at, e))? {
            Step::Packet { record, next } => {
                records.push(record);
                at = next;
            }
            Step::Skip { next } => at = next,
            Step::More(_) => return Ok(at),
        }
    }
}

/// The format by its magic number; `None` when there are not enough bytes yet.
fn first(data: &[u8], offset: u64) -> Result<Option<(Format, usize)>> {
    let Some(magic) = crate::bytes_at::be32(data, 0) else { return Ok(None) };
    if magic == pcapng::SECTION {
        return Ok(Some((Format::Pcapng(pcapng::Section::default()), 0)));
    }
    let header = pcap::Header::parse(data, offset)?;
    Ok(header.map(|header| (Format::Pcap(header), pcap::HEADER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what it has, then what a broken disk says.
    struct Disk(Cursor<Vec<u8>>);

    impl Read for Disk {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.read(to)? {
                0 => Err(io::Error::from_raw_os_error(5)),
                n => Ok(n),
            }
        }
    }

    /// Of the error that ends the first half of a capture.
    fn layer(capture: &[u8], ends: bool) -> Option<Layer> {
        let half = Cursor::new(capture.get(..capture.len() / 2)?.to_vec());
        let reader = if ends { Capture::from_reader(half, false) } else { Capture::from_reader(Disk(half), false) };
        reader.ok()?.fill(&mut Vec::new()).1.err().map(|error| error.layer())
    }

    #[test]
    fn what_the_disk_refuses_is_no_damage_of_the_capture() {
        let mut state = 1u32;
        let plain: Vec<u8> = (0..40_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let mut gzip = Vec::new();
        let packed = flate2::read::GzEncoder::new(plain.as_slice(), flate2::Compression::fast()).read_to_end(&mut gzip);
        assert!(packed.is_ok());
        let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap_or_default();
        assert_eq!(layer(&plain, false), Some(Layer::Io));
        for capture in [gzip, zstd] {
            assert_eq!(layer(&capture, false), Some(Layer::Io));
            assert_eq!(layer(&capture, true), Some(Layer::Compression));
        }
    }
}
