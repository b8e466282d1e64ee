// SPDX-License-Identifier: Apache-2.0
//! pcapng (draft-ietf-opsawg-pcapng): blocks, of which sections, interfaces and packets are read, others skipped.
#![forbid(unsafe_code)]

use crate::bytes_at::{u16_as, u32_as};
use crate::error::{Error, Layer, Result};
use crate::read::chunk::{MAX_PACKET, Record, Step};

pub const SECTION: u32 = 0x0a0d_0d0a;
const ORDER_BIG: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Type, length and the length again at the end.
const AROUND: usize = 12;
/// More interfaces than any machine has: a bound on memory for hostile files.
const MAX_INTERFACES: usize = 4096;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    snap: u32,
    clock: Clock,
    offset_s: i64,
}

#[derive(Clone, Copy, Debug)]
enum Clock {
    /// Nanoseconds per tick.
    Times(i64),
    /// Ticks per nanosecond.
    Over(u64),
    /// 2^-n seconds.
    Binary(u32),
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> i64 {
        let ns = match self.clock {
            Clock::Times(unit) => (ticks as i64).wrapping_mul(unit),
            Clock::Over(per) => (ticks / per) as i64,
            Clock::Binary(shift) => ((u128::from(ticks) * 1_000_000_000) >> shift) as i64,
        };
        ns.saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}

#[derive(Debug, Default)]
pub struct Section {
    big: bool,
    interfaces: Vec<Interface>,
}

impl Section {
    pub fn step(&mut self, data: &[u8], at: usize, base: u64) -> Result<Step> {
        let here = base + at as u64;
        let bad = |what, needed: u64, seen: u64| {
            Err(Error::Corrupt { offset: here, layer: Layer::PcapngBlock, what, needed, seen })
        };
        let Some(block) = data.get(at..).filter(|b| b.len() >= AROUND) else { return Ok(Step::More(AROUND)) };
        let raw_kind = u32_as(block, 0, true).unwrap_or(0);
        if raw_kind == SECTION {
            let order = u32_as(block, 8, true).unwrap_or(0);
            self.big = match order {
                ORDER_BIG => true,
                _ if order.swap_bytes() == ORDER_BIG => false,
                _ => return bad("byte-order magic of a section", u64::from(ORDER_BIG), u64::from(order)),
            };
        }
        let kind = u32_as(block, 0, self.big).unwrap_or(0);
        let length = u32_as(block, 4, self.big).unwrap_or(0) as usize;
        if length < AROUND || length % 4 != 0 {
            return bad("block length is not a multiple of 4 of at least 12", AROUND as u64, length as u64);
        }
        if length > MAX_PACKET {
            return bad("block length is above the limit", MAX_PACKET as u64, length as u64);
        }
        let Some(block) = block.get(..length) else { return Ok(Step::More(length)) };
        let again = u32_as(block, length - 4, self.big).unwrap_or(0);
        if again as usize != length {
            return bad("length at the end of the block differs", length as u64, u64::from(again));
        }
        let body = block.get(8..length - 4).unwrap_or_default();
        let next = at + length;
        let packet = match kind {
            SECTION => {
                self.interfaces.clear();
                let major = u16_as(body, 4, self.big).unwrap_or(0);
                if major != 1 {
                    let (what, seen) = ("format version", u64::from(major));
                    return Err(Error::Unsupported { offset: here, layer: Layer::PcapngBlock, what, seen });
                }
                None
            }
            INTERFACE if raw_kind != SECTION => {
                if self.interfaces.len() >= MAX_INTERFACES {
                    return bad("more interfaces than the limit", MAX_INTERFACES as u64, MAX_INTERFACES as u64 + 1);
                }
                match interface(body, self.big) {
                    Some(interface) => self.interfaces.push(interface),
                    None => return bad("interface block is too short", 8, body.len() as u64),
                }
                None
            }
            ENHANCED_PACKET | OLD_PACKET => self.timed(kind, body),
            SIMPLE_PACKET => self.simple(body),
            _ => return Ok(Step::Skip { next }),
        };
        match packet {
            Some((mut record, inside)) => {
                record.at = (at + 8 + inside) as u32;
                Ok(Step::Packet { record, next })
            }
            None if matches!(kind, ENHANCED_PACKET | OLD_PACKET | SIMPLE_PACKET) => {
                bad("packet block without its interface or longer than itself", 20, body.len() as u64)
            }
            None => Ok(Step::Skip { next }),
        }
    }

    /// Enhanced and obsolete packet blocks; also where in the body the packet's bytes start.
    fn timed(&self, kind: u32, body: &[u8]) -> Option<(Record, usize)> {
        let word = |i| u32_as(body, i, self.big);
        let index = if kind == OLD_PACKET { usize::from(u16_as(body, 0, self.big)?) } else { word(0)? as usize };
        let interface = self.interfaces.get(index)?;
        let ticks = u64::from(word(4)?) << 32 | u64::from(word(8)?);
        let (captured, original) = (word(12)?, word(16)?);
        body.get(20..20usize.checked_add(captured as usize)?)?;
        let time_ns = interface.time_ns(ticks);
        Some((Record { time_ns, at: 0, captured, original: original.max(captured), link: interface.link }, 20))
    }

    /// Simple packet blocks: no time, and the interface is the first.
    fn simple(&self, body: &[u8]) -> Option<(Record, usize)> {
        let interface = self.interfaces.first()?;
        let original = u32_as(body, 0, self.big)?;
        let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
        let captured = original.min(snap).min(body.len() as u32 - 4);
        Some((Record { time_ns: 0, at: 0, captured, original, link: interface.link }, 4))
    }
}

fn interface(body: &[u8], big: bool) -> Option<Interface> {
    let (link, snap) = (u16_as(body, 0, big)?, u32_as(body, 4, big)?);
    let mut found = Interface { link, snap, clock: Clock::Times(1000), offset_s: 0 };
    let mut at = 8;
    while let (Some(code), Some(length)) = (u16_as(body, at, big), u16_as(body, at + 2, big)) {
        if code == 0 {
            break;
        }
        let value = body.get(at + 4..at + 4 + usize::from(length)).unwrap_or_default();
        match (code, value) {
            (OPTION_TSRESOL, [power, ..]) => found.clock = clock(*power),
            (OPTION_TSOFFSET, _) if value.len() == 8 => {
                let (first, second) = (u32_as(value, 0, big)?, u32_as(value, 4, big)?);
                let (high, low) = if big { (first, second) } else { (second, first) };
                found.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
            }
            _ => {}
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    Some(found)
}

fn clock(power: u8) -> Clock {
    match power {
        0..=9 => Clock::Times(10i64.pow(9 - u32::from(power))),
        10..=28 => Clock::Over(10u64.pow(u32::from(power) - 9)),
        29..=127 => Clock::Over(10u64.pow(19)),
        _ => Clock::Binary(u32::from(power & 0x7f).min(127)),
    }
}
