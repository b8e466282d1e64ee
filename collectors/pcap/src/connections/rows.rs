// SPDX-License-Identifier: Apache-2.0
//! What a connection that is over leaves in `flows` and `directions`.
#![forbid(unsafe_code)]

use crate::connections::connection::{Connection, End};
use crate::write::columns::Value;
use crate::write::records::{Rows, Scale};

/// A connection is over: its intervals under way and its rows.
pub fn ended(mut connection: Box<Connection>, rows: &mut Rows) {
    connection.flush_intervals(rows);
    directions_of(&connection, rows);
}

/// Adds the rows of `directions` and `flows`.
pub fn directions_of(connection: &Connection, rows: &mut Rows) {
    let data = connection.data_side();
    for side in [connection.initiator, 1 - connection.initiator] {
        let values = row(connection, side, &rows.scale);
        rows.direction(values, side == data);
    }
}

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

/// The values of `flows::FIELDS`.
fn row(c: &Connection, side: usize, scale: &Scale) -> Vec<Value> {
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
        c.accurate_ecn().into(),
        t.data_packets.into(),
        t.unique_bytes.into(),
        i64::from(d.max_payload).into(),
        t.fast.into(),
        t.timeout.into(),
        t.timeouts.into(),
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
