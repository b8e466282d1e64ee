// SPDX-License-Identifier: Apache-2.0
//! What is simulated.
#![forbid(unsafe_code)]

#[derive(Clone, Debug)]
pub struct Settings {
    pub flows: u32,
    /// Packets after which the capture ends.
    pub packets: u64,
    pub seed: u64,
    /// Captured bytes per packet; 0 for all.
    pub snap: u32,
    pub rate_bps: u64,
    /// RTT without queue; flow i has up to half as much more.
    pub rtt_ns: u64,
    pub queue_bytes: u64,
    /// Random losses per million packets.
    pub loss_ppm: u64,
    /// Bytes per flow, 0 for no end.
    pub flow_bytes: u64,
    pub mss: u32,
    pub nanoseconds: bool,
    /// Every how many segments the receiver acknowledges.
    pub ack_every: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            flows: 1,
            packets: 1_200_000,
            seed: 1,
            snap: 96,
            rate_bps: 1_000_000_000,
            rtt_ns: 40_000_000,
            queue_bytes: 2_500_000,
            loss_ppm: 20,
            flow_bytes: 0,
            mss: 1448,
            nanoseconds: true,
            ack_every: 2,
        }
    }
}
