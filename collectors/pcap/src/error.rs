// SPDX-License-Identifier: Apache-2.0
//! The one error type: where in the capture, in which layer, how much was needed and how much was there.
#![forbid(unsafe_code)]

use std::fmt;

/// The layer at which reading stopped making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The file or pipe itself: open, read, write.
    Io,
    /// gzip or zstd around the capture.
    Compression,
    /// The file header of a pcap.
    PcapHeader,
    /// The 16 bytes before a packet in a pcap.
    PcapRecord,
    /// A block of a pcapng.
    PcapngBlock,
    /// Ethernet, SLL, SLL2, VLAN.
    Link,
    Ipv4,
    Ipv6,
    Tcp,
    /// The Parquet files written.
    Parquet,
    /// Arguments that cannot be met.
    Arguments,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Layer::Io => "io",
            Layer::Compression => "compression",
            Layer::PcapHeader => "pcap header",
            Layer::PcapRecord => "pcap record",
            Layer::PcapngBlock => "pcapng block",
            Layer::Link => "link",
            Layer::Ipv4 => "ipv4",
            Layer::Ipv6 => "ipv6",
            Layer::Tcp => "tcp",
            Layer::Parquet => "parquet",
            Layer::Arguments => "arguments",
        }
    }
}

/// What failed. `offset` counts bytes of the (decompressed) capture; `needed` and `seen` are bytes, or the
/// limit and the value where a value is out of range (`what` says which).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The input ends before something that it announced.
    Truncated { offset: u64, layer: Layer, needed: u64, seen: u64 },
    /// A value that no valid capture holds.
    Corrupt { offset: u64, layer: Layer, what: &'static str, needed: u64, seen: u64 },
    /// Valid as far as is known, but not something this parser reads.
    Unsupported { offset: u64, layer: Layer, what: &'static str, seen: u64 },
    /// The operating system, a decompressor or the Parquet writer refused.
    Outside { offset: u64, layer: Layer, what: String },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn offset(&self) -> u64 {
        match self {
            Error::Truncated { offset, .. }
            | Error::Corrupt { offset, .. }
            | Error::Unsupported { offset, .. }
            | Error::Outside { offset, .. } => *offset,
        }
    }

    pub fn layer(&self) -> Layer {
        match self {
            Error::Truncated { layer, .. }
            | Error::Corrupt { layer, .. }
            | Error::Unsupported { layer, .. }
            | Error::Outside { layer, .. } => *layer,
        }
    }

    /// Bytes (or the limit) needed and seen, where the failure has them.
    pub fn needed_seen(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Error::Truncated { needed, seen, .. } | Error::Corrupt { needed, seen, .. } => (Some(*needed), Some(*seen)),
            Error::Unsupported { seen, .. } => (None, Some(*seen)),
            Error::Outside { .. } => (None, None),
        }
    }

    pub fn outside(offset: u64, layer: Layer, what: impl fmt::Display) -> Self {
        Error::Outside { offset, layer, what: what.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}: ", self.offset(), self.layer().name())?;
        match self {
            Error::Truncated { needed, seen, .. } => write!(f, "cut short: needed {needed} bytes, seen {seen}"),
            Error::Corrupt { what, needed, seen, .. } => write!(f, "{what}: needed {needed}, seen {seen}"),
            Error::Unsupported { what, seen, .. } => write!(f, "{what} {seen} is not supported"),
            Error::Outside { what, .. } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}
