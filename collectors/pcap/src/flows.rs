// SPDX-License-Identifier: Apache-2.0
//! The tables `flows` (one row per connection: its data direction) and `directions` (both).
#![forbid(unsafe_code)]

use crate::columns::Kind::{Bool, F64, I64, Text};
use crate::columns::{Field, Value, field, nullable};
use crate::connection::{Connection, End};
use crate::records::Scale;

pub const FIELDS: &[Field] = &[
    // The contract of docs/architecture.md.
    field("flow", Text),
    nullable("cca", Text),
    field("src", Text),
    field("dst", Text),
    field("src_addr", Text),
    field("src_port", I64),
    field("dst_addr", Text),
    field("dst_port", I64),
    field("start_s", F64),
    field("end_s", F64),
    field("packets", I64),
    field("payload_bytes", I64),
    field("wire_bytes", I64),
    field("retransmitted_packets", I64),
    field("retransmitted_bytes", I64),
    field("delivered_bytes", I64),
    nullable("throughput_mbps", F64),
    nullable("goodput_mbps", F64),
    nullable("rtt_min_ms", F64),
    nullable("rtt_mean_ms", F64),
    nullable("rtt_p95_ms", F64),
    nullable("completion_s", F64),
    // Which connection, which way, how seen.
    field("capture", Text),
    field("time_ns", I64),
    nullable("data_start_s", F64),
    field("forward", Bool),
    field("end_reason", Text),
    field("handshake", Bool),
    nullable("handshake_rtt_ms", F64),
    nullable("responder_share", F64),
    field("at_receiver", Bool),
    field("initial_seq", I64),
    nullable("mss_bytes", I64),
    nullable("window_scale", I64),
    field("sack", Bool),
    field("timestamps", Bool),
    field("ecn", Bool),
    // What was sent.
    field("data_packets", I64),
    field("unique_bytes", I64),
    field("max_payload_bytes", I64),
    field("fast_retransmissions", I64),
    field("timeout_retransmissions", I64),
    field("tail_probe_retransmissions", I64),
    field("other_retransmissions", I64),
    field("spurious_retransmissions", I64),
    field("spurious_by_dsack", I64),
    field("spurious_by_timestamps", I64),
    field("out_of_order_packets", I64),
    field("gaps", I64),
    field("unseen_bytes", I64),
    field("out_of_window_packets", I64),
    field("keep_alives", I64),
    field("zero_window_probes", I64),
    field("max_in_flight_bytes", I64),
    field("ect_packets", I64),
    field("ce_packets", I64),
    field("ece_packets", I64),
    field("cwr_packets", I64),
    field("resets", I64),
    // What the receiver reported.
    field("acks", I64),
    field("duplicate_acks", I64),
    field("sack_blocks", I64),
    field("dsack_blocks", I64),
    field("sack_reneged", I64),
    field("zero_windows", I64),
    field("zero_window_s", F64),
    nullable("window_limited_s", F64),
    field("rtt_samples", I64),
    nullable("rtt_max_ms", F64),
    field("rtt_timestamps_samples", I64),
    nullable("rtt_timestamps_min_ms", F64),
    nullable("rtt_timestamps_mean_ms", F64),
    nullable("rtt_timestamps_p95_ms", F64),
];

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn reason(end: End) -> &'static str {
    match end {
        End::Open => "open",
        End::Fin => "fin",
        End::Reset => "reset",
        End::Reused => "reused",
        End::Evicted => "evicted",
    }
}

pub fn row(c: &Connection, side: usize, scale: &Scale) -> Vec<Value> {
    let [low, high] = &c.directions;
    let (d, back) = if side == 0 { (low, high) } else { (high, low) };
    let t = &d.totals;
    let origin = scale.origin_ns;
    let (src_addr, src_port) = c.endpoint(side);
    let (dst_addr, dst_port) = c.endpoint(1 - side);
    let as_data = c.label.data.is_none_or(|data| data == side);
    let (src, dst) = if as_data { (&c.label.src, &c.label.dst) } else { (&c.label.dst, &c.label.src) };
    let start = d.first_ns.or(back.first_ns).unwrap_or(c.last_ns);
    let end = d.last_data_ns.unwrap_or(d.last_ns.max(start)).max(d.complete_ns.unwrap_or(start));
    let span_s = seconds(end - start);
    let at_receiver = c.at_receiver(side);
    let delivered = if at_receiver { t.unique_bytes } else { t.acked_bytes };
    let mbps = |bytes: u64| (span_s > 0.0).then(|| bytes as f64 * 8e-6 / span_s);
    let ms = |ns: Option<f64>| ns.map(|ns| ns / 1e6);
    let (rtt, by_timestamps) = (&d.rtt, &d.rtt_by_timestamps);
    let some = |samples: u64, ns: i64| (samples > 0).then_some(ns as f64);
    // A flow of the experiment file without a size has no completion; of others the FIN tells.
    let sized = c.label.data.is_none() || c.label.sized;
    let completion_s = d.complete_ns.filter(|_| sized).map(|done| seconds(done - start));
    let ongoing = |since: Option<i64>| since.map_or(0, |since| (c.last_ns - since).max(0));
    let limited_ns = t.window_limited_ns + ongoing(d.limited_since);
    let known_window = d.window.is_some();
    vec![
        c.label.flow.text.as_str().into(),
        c.label.cca.as_deref().into(),
        src.as_deref().unwrap_or(&src_addr).into(),
        dst.as_deref().unwrap_or(&dst_addr).into(),
        src_addr.as_str().into(),
        i64::from(src_port).into(),
        dst_addr.as_str().into(),
        i64::from(dst_port).into(),
        seconds(start - origin).into(),
        seconds(end - origin).into(),
        t.packets.into(),
        t.payload_bytes.into(),
        t.wire_bytes.into(),
        t.retransmitted_packets.into(),
        t.retransmitted_bytes.into(),
        delivered.into(),
        mbps(t.wire_bytes).into(),
        mbps(delivered).into(),
        ms(some(rtt.samples, rtt.min_ns)).into(),
        ms(rtt.mean_ns()).into(),
        ms(rtt.quantile_ns(0.95)).into(),
        completion_s.into(),
        scale.capture.as_ref().into(),
        start.into(),
        d.first_data_ns.map(|ns| seconds(ns - origin)).into(),
        (side == c.initiator).into(),
        reason(c.end).into(),
        c.handshake_seen().into(),
        ms(c.handshake_rtt_ns().map(|ns| ns as f64)).into(),
        c.responder_share().into(),
        at_receiver.into(),
        i64::from(d.initial_seq()).into(),
        d.syn.and_then(|syn| syn.mss).map(i64::from).into(),
        d.syn.and_then(|syn| syn.window_scale).map(i64::from).into(),
        c.sack().into(),
        (d.timestamps && back.timestamps).into(),
        c.ecn().into(),
        t.data_packets.into(),
        t.unique_bytes.into(),
        i64::from(d.max_payload).into(),
        t.fast.into(),
        t.timeout.into(),
        t.tail_probe.into(),
        t.other.into(),
        (t.spurious_dsack + t.spurious_timestamps).into(),
        t.spurious_dsack.into(),
        t.spurious_timestamps.into(),
        t.out_of_order.into(),
        t.gaps.into(),
        t.unseen_bytes.into(),
        t.out_of_window.into(),
        t.keep_alives.into(),
        t.zero_window_probes.into(),
        t.max_in_flight.into(),
        t.ect.into(),
        t.ce.into(),
        back.totals.ece.into(),
        t.cwr.into(),
        t.resets.into(),
        t.acks.into(),
        t.duplicate_acks.into(),
        t.sack_blocks.into(),
        t.dsack_blocks.into(),
        t.reneged.into(),
        t.zero_windows.into(),
        seconds(t.zero_window_ns + ongoing(d.zero_since)).into(),
        known_window.then(|| seconds(limited_ns)).into(),
        rtt.samples.into(),
        ms(some(rtt.samples, rtt.max_ns)).into(),
        by_timestamps.samples.into(),
        ms(some(by_timestamps.samples, by_timestamps.min_ns)).into(),
        ms(by_timestamps.mean_ns()).into(),
        ms(by_timestamps.quantile_ns(0.95)).into(),
    ]
}
