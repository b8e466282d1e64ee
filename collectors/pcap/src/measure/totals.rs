// SPDX-License-Identifier: Apache-2.0
//! What is counted of one direction, for the tables `flows` and `directions`.
#![forbid(unsafe_code)]

/// Totals of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub packets: u64,
    pub wire_bytes: u64,
    pub payload_bytes: u64,
    pub data_packets: u64,
    /// Payload bytes seen for the first time at the capture.
    pub unique_bytes: u64,
    /// Bytes the receiver reported, by ACK or SACK.
    pub acked_bytes: u64,
    pub retransmitted_packets: u64,
    pub retransmitted_bytes: u64,
    pub fast: u64,
    pub timeout: u64,
    /// How often the sender's timer expired: several segments may be sent again after one.
    pub timeouts: u64,
    pub tail_probe: u64,
    pub other: u64,
    pub spurious_dsack: u64,
    pub spurious_timestamps: u64,
    pub out_of_order: u64,
    pub gaps: u64,
    pub keep_alives: u64,
    pub zero_window_probes: u64,
    pub out_of_window: u64,
    pub duplicate_acks: u64,
    pub acks: u64,
    pub sack_blocks: u64,
    pub dsack_blocks: u64,
    pub reneged: u64,
    pub unseen_bytes: u64,
    pub zero_windows: u64,
    pub zero_window_ns: i64,
    pub window_limited_ns: i64,
    pub max_in_flight: i64,
    pub ect: u64,
    pub ce: u64,
    pub ece: u64,
    pub cwr: u64,
    pub fins: u64,
    pub resets: u64,
}
