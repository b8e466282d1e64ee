// SPDX-License-Identifier: Apache-2.0
//! Classic pcap (draft-ietf-opsawg-pcap): a 24-byte header, then packets with 16 bytes before each.
#![forbid(unsafe_code)]

use crate::bytes_at::{u16_as, u32_as};
use crate::error::{Error, Layer, Result};
use crate::read::chunk::{MAX_PACKET, Record, Step};

pub const HEADER: usize = 24;
const RECORD: usize = 16;
const MAGIC_US: u32 = 0xa1b2_c3d4;
const MAGIC_NS: u32 = 0xa1b2_3c4d;

#[derive(Debug)]
pub struct Header {
    big: bool,
    /// Nanoseconds per unit of the sub-second field.
    unit_ns: i64,
    link: u16,
}

impl Header {
    /// `None` when there are not enough bytes yet.
    pub fn parse(data: &[u8], offset: u64) -> Result<Option<Self>> {
        let Some(magic) = u32_as(data, 0, true) else { return Ok(None) };
        let (big, unit_ns) = match (magic, magic.swap_bytes()) {
            (MAGIC_US, _) => (true, 1000),
            (_, MAGIC_US) => (false, 1000),
            (MAGIC_NS, _) => (true, 1),
            (_, MAGIC_NS) => (false, 1),
            _ => {
                let what = "not a capture: first four bytes";
                let (needed, seen) = (u64::from(MAGIC_US), u64::from(magic));
                return Err(Error::Corrupt { offset, layer: Layer::PcapHeader, what, needed, seen });
            }
        };
        let (Some(major), Some(link)) = (u16_as(data, 4, big), u32_as(data, 20, big)) else { return Ok(None) };
        if major != 2 {
            let what = "format version";
            return Err(Error::Unsupported {
                offset: offset + 4,
                layer: Layer::PcapHeader,
                what,
                seen: u64::from(major),
            });
        }
        // The upper bits say how long a frame check sequence is, if any.
        Ok(Some(Header { big, unit_ns, link: (link & 0xffff) as u16 }))
    }

    #[inline(always)]
    pub fn step(&self, data: &[u8], at: usize, base: u64) -> Result<Step> {
        let Some(head) = data.get(at..).and_then(|d| d.first_chunk::<RECORD>()) else { return Ok(Step::More(RECORD)) };
        let word = |i: usize| u32_as(head, i, self.big).unwrap_or(0);
        let (seconds, part, captured, original) = (word(0), word(4), word(8), word(12));
        if captured as usize > MAX_PACKET {
            let what = "length of the captured packet is above the limit";
            let (needed, seen) = (MAX_PACKET as u64, u64::from(captured));
            return Err(Error::Corrupt { offset: base + at as u64 + 8, layer: Layer::PcapRecord, what, needed, seen });
        }
        let start = at + RECORD;
        let next = start + captured as usize;
        if next > data.len() {
            return Ok(Step::More(RECORD + captured as usize));
        }
        let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(part) * self.unit_ns;
        let record = Record { time_ns, at: start as u32, captured, original: original.max(captured), link: self.link };
        Ok(Step::Packet { record, next })
    }
}
