// SPDX-License-Identifier: Apache-2.0
//! Framed packets and the bytes that hold them: what the formats make and the analysis takes.
#![forbid(unsafe_code)]

/// The largest packet or pcapng block accepted (tcpdump's largest snap length is 256 KiB).
pub const MAX_PACKET: usize = 4 * 1024 * 1024;

/// One captured packet inside its chunk.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub time_ns: i64,
    /// Where the captured bytes start in the chunk.
    pub at: u32,
    pub captured: u32,
    /// Length on the wire.
    pub original: u32,
    pub link: u16,
}

/// Consecutive packets of a capture and the bytes that hold them.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Those of the capture, and room.
    pub data: Vec<u8>,
    pub records: Vec<Record>,
    /// Offset of `data[0]` in the decompressed capture.
    pub offset: u64,
}

/// What the framing of a format made of the bytes at `at`.
pub enum Step {
    Packet {
        record: Record,
        next: usize,
    },
    /// A block without a packet.
    Skip {
        next: usize,
    },
    /// Needs this many bytes from `at` on.
    More(usize),
}
