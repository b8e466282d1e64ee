// SPDX-License-Identifier: Apache-2.0
//! A simulated packet as a record of a pcap file.
#![forbid(unsafe_code)]

use super::settings::Settings;
use crate::read::packet::{ACK, SYN};

const START_NS: u64 = 1_700_000_000_000_000_000;
const WINDOW_SHIFT: u8 = 10;
pub const WINDOW_BYTES: u64 = 48 << 20;

/// A packet to be written; sequence numbers count from the first byte of the stream.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    pub forward: bool,
    pub flags: u8,
    pub seq: i64,
    pub ack: i64,
    pub len: u32,
    pub sack: [(i64, i64); 3],
    pub tsecr: u32,
}

/// Writes the packet that passes the capture at `now` (ns) into `b`. `isn`: the initial sequence number of the
/// flow's sender; `flow` gives the addresses.
pub fn write_frame(b: &mut Vec<u8>, settings: &Settings, now: u64, (flow, isn, ip_id): (u32, u32, u16), sent: &Sent) {
    let syn = sent.flags & SYN != 0;
    let blocks = sent.sack.iter().filter(|b| b.1 > b.0).count();
    let options = if syn { 20 } else { 12 + if blocks > 0 { 4 + 8 * blocks } else { 0 } };
    let ip_length = 40 + options + sent.len as usize;
    let original = 14 + ip_length;
    let [_, _, high, low] = flow.to_be_bytes();
    let (client, server) = ([10, 0, high, low], [10, 1, high, low]);
    let (source, destination) = if sent.forward { (client, server) } else { (server, client) };
    let (source_port, destination_port) = if sent.forward { (40_000u16, 5201u16) } else { (5201, 40_000) };
    let stamp = (now / 1_000_000) as u32;
    let other_isn = isn.wrapping_mul(2_654_435_761).wrapping_add(1);
    let (mine, theirs) = if sent.forward { (isn, other_isn) } else { (other_isn, isn) };
    let seq = mine.wrapping_add(1).wrapping_add(sent.seq as u32);
    let ack = if sent.flags & ACK == 0 { 0 } else { theirs.wrapping_add(1).wrapping_add(sent.ack as u32) };
    let time = START_NS + now;
    let part = if settings.nanoseconds { time % 1_000_000_000 } else { time % 1_000_000_000 / 1000 };
    let captured = if settings.snap == 0 { original } else { original.min(settings.snap as usize) };
    b.clear();
    for word in [(time / 1_000_000_000) as u32, part as u32, captured as u32, original as u32] {
        b.extend_from_slice(&word.to_le_bytes());
    }
    b.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
    b.extend_from_slice(&(ip_length as u16).to_be_bytes());
    b.extend_from_slice(&ip_id.to_be_bytes());
    b.extend_from_slice(&[0x40, 0, 64, 6, 0, 0]);
    b.extend_from_slice(&source);
    b.extend_from_slice(&destination);
    b.extend_from_slice(&source_port.to_be_bytes());
    b.extend_from_slice(&destination_port.to_be_bytes());
    b.extend_from_slice(&seq.to_be_bytes());
    b.extend_from_slice(&ack.to_be_bytes());
    b.extend_from_slice(&[(((20 + options) / 4) << 4) as u8, sent.flags]);
    let window = if syn { 65_535 } else { (WINDOW_BYTES >> WINDOW_SHIFT) as u16 };
    b.extend_from_slice(&window.to_be_bytes());
    b.extend_from_slice(&[0, 0, 0, 0]);
    if syn {
        let [high, low] = (settings.mss as u16 + 12).to_be_bytes();
        b.extend_from_slice(&[2, 4, high, low, 4, 2, 8, 10]);
    } else {
        b.extend_from_slice(&[1, 1, 8, 10]);
    }
    b.extend_from_slice(&stamp.to_be_bytes());
    let echo = if sent.tsecr != 0 {
        sent.tsecr
    } else if sent.flags == SYN {
        0
    } else {
        stamp
    };
    b.extend_from_slice(&echo.to_be_bytes());
    if syn {
        b.extend_from_slice(&[1, 3, 3, WINDOW_SHIFT]);
    }
    if blocks > 0 {
        b.extend_from_slice(&[1, 1, 5, (2 + 8 * blocks) as u8]);
        for block in sent.sack.iter().filter(|b| b.1 > b.0) {
            b.extend_from_slice(&theirs.wrapping_add(1).wrapping_add(block.0 as u32).to_be_bytes());
            b.extend_from_slice(&theirs.wrapping_add(1).wrapping_add(block.1 as u32).to_be_bytes());
        }
    }
    b.resize(16 + captured, 0);
}
