// SPDX-License-Identifier: Apache-2.0
//! What the TCP analysis needs of a packet.
#![forbid(unsafe_code)]

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;

/// Both ends of a connection, the smaller one first, so that both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Key {
    /// IPv6 addresses, or IPv4 ones in the low 32 bits with `v4` set.
    pub low: u128,
    pub high: u128,
    pub low_port: u16,
    pub high_port: u16,
    pub v4: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SynOptions {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    /// The flag AE of the header, once called NS (RFC 9768).
    pub accurate_ecn: bool,
}

pub const MAX_SACK: usize = 4;

pub type SackBlocks = [(u32, u32)];

/// One TCP packet as the analysis takes it: a cache line, since threads hand each other millions of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub time_ns: i64,
    pub seq: u32,
    pub ack: u32,
    pub payload: u32,
    /// Bytes on the wire, as captured packets count them (an Ethernet frame without its check sequence).
    pub wire: u32,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    pub window: u16,
    /// IPv4 identification; with the rest it tells packets apart at two points of a path.
    pub ip_id: u16,
    pub syn: SynOptions,
    pub flags: u8,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// The sender is `key.high`.
    pub from_high: bool,
    pub sack_count: u8,
    /// Where its block keeps the ends and the SACK blocks (`block.rs`).
    pub ends: u32,
    pub sack_at: u32,
}

const _: () = assert!(size_of::<Packet>() <= 64);

/// A packet as it was decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Whole {
    pub packet: Packet,
    pub key: Key,
    /// The first `packet.sack_count` count.
    pub sack: [(u32, u32); MAX_SACK],
}

impl Whole {
    pub fn sack(&self) -> &SackBlocks {
        self.sack.get(..usize::from(self.packet.sack_count)).unwrap_or_default()
    }
}

/// Both ends of a connection, and where the analysis keeps it: its hash and its shard (`route.rs`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    pub key: Key,
    pub hash: u64,
    pub shard: u8,
}

/// A packet and what its block keeps for it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub packet: &'a Packet,
    pub ends: &'a Ends,
    pub sack: &'a SackBlocks,
}

impl Key {
    /// Both ends and ports as words for the hash.
    #[inline(always)]
    pub fn words(&self) -> (u128, u128, u64) {
        (self.low, self.high, u64::from(self.low_port) << 32 | u64::from(self.high_port) << 8 | u64::from(self.v4))
    }
}

pub fn address_text(address: u128, v4: bool) -> String {
    if v4 {
        std::net::Ipv4Addr::from(address as u32).to_string()
    } else {
        std::net::Ipv6Addr::from(address).to_string()
    }
}
