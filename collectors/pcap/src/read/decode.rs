// SPDX-License-Identifier: Apache-2.0
//! From captured bytes to a packet. Stateless, so that threads can share the work.
#![forbid(unsafe_code)]

use crate::bytes_at::{array, be16, be32};
use crate::error::{Error, Layer, Result};
use crate::read::chunk::Record;
use crate::read::packet::{Key, SYN, SynOptions, Whole};

/// What a captured packet turned out to be.
#[derive(Debug)]
pub enum Decoded {
    Tcp {
        /// The first fragment of a datagram: its payload is not all of it.
        fragment: bool,
    },
    /// Not TCP, or not IP.
    Other,
    /// A fragment without the TCP header.
    Fragment,
}

const LINK_NULL: u16 = 0;
const LINK_ETHERNET: u16 = 1;
const LINK_RAW_BSD: u16 = 12;
const LINK_RAW_OPENBSD: u16 = 14;
const LINK_RAW: u16 = 101;
const LINK_LOOP: u16 = 108;
const LINK_SLL: u16 = 113;
const LINK_IPV4: u16 = 228;
const LINK_IPV6: u16 = 229;
const LINK_SLL2: u16 = 276;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// VLAN tags that are looked through; more is not a real network.
const MAX_VLAN: usize = 4;
const MAX_EXTENSION_HEADERS: usize = 8;
const PROTOCOL_TCP: u8 = 6;

/// Decodes a record of a chunk that starts at `base` of the capture. The error is of this packet only.
#[inline]
pub fn decode(data: &[u8], record: &Record, base: u64, out: &mut Whole) -> Result<Decoded> {
    let start = record.at as usize;
    let frame = data.get(start..start + record.captured as usize).unwrap_or_default();
    let view = View { frame, base: base + record.at as u64 };
    out.packet.time_ns = record.time_ns;
    out.packet.wire = record.original;
    let (ethertype, at) = match record.link {
        LINK_ETHERNET => tags(view, 12)?,
        LINK_SLL => tags(view, 14)?,
        LINK_SLL2 => {
            let protocol = view.be16(0, Layer::Link)?;
            if is_vlan(protocol) { tags(view, 22)? } else { (protocol, 20) }
        }
        LINK_RAW | LINK_RAW_BSD | LINK_RAW_OPENBSD | LINK_IPV4 | LINK_IPV6 => (by_version(view, 0)?, 0),
        LINK_NULL | LINK_LOOP => (by_version(view, 4)?, 4),
        _ => return Ok(Decoded::Other),
    };
    match ethertype {
        IPV4 => ipv4(view, at, record, out),
        IPV6 => ipv6(view, at, record, out),
        _ => Ok(Decoded::Other),
    }
}

/// The captured bytes of one packet and where they are in the capture.
#[derive(Clone, Copy)]
struct View<'a> {
    frame: &'a [u8],
    base: u64,
}

impl<'a> View<'a> {
    #[cold]
    fn short(self, at: usize, layer: Layer, needed: usize) -> Error {
        let seen = self.frame.len().saturating_sub(at) as u64;
        Error::Truncated { offset: self.base + at as u64, layer, needed: needed as u64, seen }
    }

    #[inline(always)]
    fn be16(self, at: usize, layer: Layer) -> Result<u16> {
        be16(self.frame, at).ok_or_else(|| self.short(at, layer, 2))
    }

    #[inline(always)]
    fn array<const N: usize>(self, at: usize, layer: Layer) -> Result<[u8; N]> {
        array(self.frame, at).ok_or_else(|| self.short(at, layer, N))
    }

    #[cold]
    fn corrupt(self, at: usize, layer: Layer, what: &'static str, needed: usize, seen: usize) -> Error {
        Error::Corrupt { offset: self.base + at as u64, layer, what, needed: needed as u64, seen: seen as u64 }
    }
}

fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100)
}

/// The EtherType at `at`, past VLAN tags, and where its payload starts.
#[inline(always)]
fn tags(view: View<'_>, mut at: usize) -> Result<(u16, usize)> {
    for _ in 0..=MAX_VLAN {
        let ethertype = view.be16(at, Layer::Link)?;
        if !is_vlan(ethertype) {
            return Ok((ethertype, at + 2));
        }
        at += 4;
    }
    Ok((0, at))
}

fn by_version(view: View<'_>, at: usize) -> Result<u16> {
    let [first] = view.array::<1>(at, Layer::Link)?;
    Ok(match first >> 4 {
        4 => IPV4,
        6 => IPV6,
        _ => 0,
    })
}

#[inline(always)]
fn ipv4(view: View<'_>, at: usize, record: &Record, out: &mut Whole) -> Result<Decoded> {
    let head: [u8; 20] = view.array(at, Layer::Ipv4)?;
    let header = usize::from(head[0] & 0x0f) * 4;
    if head[0] >> 4 != 4 || header < 20 {
        return Err(view.corrupt(at, Layer::Ipv4, "header length", 20, header));
    }
    let total = match usize::from(u16::from_be_bytes([head[2], head[3]])) {
        // Captured before segmentation offload filled it in.
        0 => (record.original as usize).saturating_sub(at),
        total => total,
    };
    if total < header {
        return Err(view.corrupt(at + 2, Layer::Ipv4, "total length is below the header length", header, total));
    }
    if head[9] != PROTOCOL_TCP {
        return Ok(Decoded::Other);
    }
    let fragment = u16::from_be_bytes([head[6], head[7]]);
    if fragment & 0x1fff != 0 {
        return Ok(Decoded::Fragment);
    }
    out.packet.ecn = head[1] & 3;
    out.packet.ip_id = u16::from_be_bytes([head[4], head[5]]);
    let source = u128::from(u32::from_be_bytes([head[12], head[13], head[14], head[15]]));
    let destination = u128::from(u32::from_be_bytes([head[16], head[17], head[18], head[19]]));
    tcp(view, at + header, total - header, (source, destination, true), out)?;
    Ok(Decoded::Tcp { fragment: fragment & 0x2000 != 0 })
}

#[inline(always)]
fn ipv6(view: View<'_>, at: usize, record: &Record, out: &mut Whole) -> Result<Decoded> {
    let head: [u8; 40] = view.array(at, Layer::Ipv6)?;
    if head[0] >> 4 != 6 {
        return Err(view.corrupt(at, Layer::Ipv6, "version", 6, usize::from(head[0] >> 4)));
    }
    let mut left = match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        0 => (record.original as usize).saturating_sub(at + 40),
        length => length,
    };
    out.packet.ecn = (head[1] >> 4) & 3;
    out.packet.ip_id = 0;
    let mut fragment = false;
    let mut next = head[6];
    let mut place = at + 40;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let length = match next {
            PROTOCOL_TCP => {
                let source = u128::from_be_bytes(view.array(at + 8, Layer::Ipv6)?);
                let destination = u128::from_be_bytes(view.array(at + 24, Layer::Ipv6)?);
                tcp(view, place, left, (source, destination, false), out)?;
                return Ok(Decoded::Tcp { fragment });
            }
            // Hop-by-hop, routing, destination options, mobility, host identity, shim.
            0 | 43 | 60 | 135 | 139 | 140 => usize::from(view.array::<2>(place, Layer::Ipv6)?[1]) * 8 + 8,
            44 => {
                let part: [u8; 8] = view.array(place, Layer::Ipv6)?;
                let offset = u16::from_be_bytes([part[2], part[3]]);
                if offset & 0xfff8 != 0 {
                    return Ok(if part[0] == PROTOCOL_TCP { Decoded::Fragment } else { Decoded::Other });
                }
                fragment = offset & 1 != 0;
                8
            }
            // Authentication header.
            51 => usize::from(view.array::<2>(place, Layer::Ipv6)?[1]) * 4 + 8,
            _ => return Ok(Decoded::Other),
        };
        next = view.array::<1>(place, Layer::Ipv6)?[0];
        if length > left {
            return Err(view.corrupt(place, Layer::Ipv6, "extension header is longer than the packet", length, left));
        }
        place += length;
        left -= length;
    }
    Ok(Decoded::Other)
}

#[inline(always)]
fn tcp(view: View<'_>, at: usize, length: usize, ends: (u128, u128, bool), out: &mut Whole) -> Result<()> {
    let head: [u8; 20] = view.array(at, Layer::Tcp)?;
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 || header > length {
        return Err(view.corrupt(
            at + 12,
            Layer::Tcp,
            "header length (at least 20, at most what IP holds)",
            length,
            header,
        ));
    }
    let (source, destination, v4) = ends;
    let source_port = u16::from_be_bytes([head[0], head[1]]);
    let destination_port = u16::from_be_bytes([head[2], head[3]]);
    out.packet.from_high = (source, source_port) > (destination, destination_port);
    out.key = if out.packet.from_high {
        Key { low: destination, high: source, low_port: destination_port, high_port: source_port, v4 }
    } else {
        Key { low: source, high: destination, low_port: source_port, high_port: destination_port, v4 }
    };
    out.packet.seq = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    out.packet.ack = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    out.packet.flags = head[13];
    out.packet.window = u16::from_be_bytes([head[14], head[15]]);
    out.packet.payload = (length - header) as u32;
    out.packet.timestamps = None;
    out.packet.sack_count = 0;
    out.packet.syn = SynOptions::default();
    out.packet.syn.accurate_ecn = head[13] & SYN != 0 && head[12] & 1 != 0;
    let options = view.frame.get(at + 20..view.frame.len().min(at + header)).unwrap_or_default();
    // Two NOPs and a timestamp option: what nearly every data packet has.
    if let (12, Some([1, 1, 8, 10, rest @ ..])) = (options.len(), options.first_chunk::<12>()) {
        out.packet.timestamps = be32(rest, 0).zip(be32(rest, 4));
    } else if !options.is_empty() {
        parse_options(options, out);
    }
    Ok(())
}

fn parse_options(mut options: &[u8], out: &mut Whole) {
    let is_syn = out.packet.flags & SYN != 0;
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            0 => return,
            1 => {
                options = rest;
                continue;
            }
            _ => {}
        }
        let Some(&length) = rest.first() else { return };
        let Some(body) = options.get(2..usize::from(length)) else { return };
        match (kind, body.len()) {
            (2, 2) if is_syn => out.packet.syn.mss = be16(body, 0),
            (3, 1) if is_syn => out.packet.syn.window_scale = body.first().map(|shift| (*shift).min(14)),
            (4, 0) if is_syn => out.packet.syn.sack_permitted = true,
            (5, _) => {
                for block in body.chunks_exact(8) {
                    if let (Some(place), Some(left), Some(right)) =
                        (out.sack.get_mut(usize::from(out.packet.sack_count)), be32(block, 0), be32(block, 4))
                    {
                        *place = (left, right);
                        out.packet.sack_count += 1;
                    }
                }
            }
            (8, 8) => out.packet.timestamps = be32(body, 0).zip(be32(body, 4)),
            _ => {}
        }
        options = options.get(usize::from(length)..).unwrap_or_default();
    }
}
