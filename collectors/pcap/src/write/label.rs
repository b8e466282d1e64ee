// SPDX-License-Identifier: Apache-2.0
//! How connections are named in the records: by the experiment's flows, and the others by their ends.
#![forbid(unsafe_code)]

use crate::read::packet::{Key, address_text};
use crate::write::words::Known;

/// A flow of the experiment file, to be found in the capture. `None` matches anything.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub name: String,
    pub cca: Option<String>,
    pub src: Option<String>,
    pub dst: Option<String>,
    pub src_addr: Option<String>,
    pub src_port: Option<u16>,
    pub dst_addr: Option<String>,
    pub dst_port: Option<u16>,
    /// Bytes that the flow was to carry.
    pub size_bytes: Option<u64>,
    /// Matching connections to pass over first, such as iperf3's control connection.
    pub skip: u32,
}

type End = (String, u16);

fn ends(key: &Key) -> (End, End) {
    ((address_text(key.low, key.v4), key.low_port), (address_text(key.high, key.v4), key.high_port))
}

impl Wanted {
    fn matches(&self, src: &End, dst: &End) -> bool {
        self.src_addr.as_ref().is_none_or(|a| *a == src.0)
            && self.dst_addr.as_ref().is_none_or(|a| *a == dst.0)
            && self.src_port.is_none_or(|p| p == src.1)
            && self.dst_port.is_none_or(|p| p == dst.1)
    }

    /// Whether a connection fits with its data going from `key.low` to `key.high`, and the other way.
    fn both_ways(&self, low: &End, high: &End) -> (bool, bool) {
        (self.matches(low, high), self.matches(high, low))
    }
}

/// The first of `wanted` that a connection fits.
pub fn first_fit(wanted: &[Wanted], key: &Key) -> Option<usize> {
    let (low, high) = ends(key);
    wanted.iter().position(|w| w.both_ways(&low, &high) != (false, false))
}

/// A flow's name, and its places in the lists of words of the batches under way (`words.rs`).
#[derive(Clone, Debug, Default)]
pub struct FlowName {
    pub text: String,
    pub in_acks: Known,
    pub in_intervals: Known,
}

impl From<String> for FlowName {
    fn from(text: String) -> Self {
        FlowName { text, ..FlowName::default() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Label {
    pub flow: FlowName,
    pub cca: Option<String>,
    pub src: Option<String>,
    pub dst: Option<String>,
    /// Which direction carries the flow's data, where the experiment file says so: 0 from `key.low`, 1 from `key.high`.
    pub data: Option<usize>,
    pub sized: bool,
}

/// Gives connections their names, in the order of their first packets.
#[derive(Debug, Default)]
pub struct Namer {
    wanted: Vec<(Wanted, u32)>,
}

impl Namer {
    pub fn new(wanted: Vec<Wanted>) -> Self {
        Namer { wanted: wanted.into_iter().map(|w| (w, 0)).collect() }
    }

    /// The label and the flow's size.
    pub fn label(&mut self, key: &Key, from_high: bool) -> (Label, Option<u64>) {
        let (low, high) = ends(key);
        for (wanted, seen) in &mut self.wanted {
            let data = match wanted.both_ways(&low, &high) {
                (false, false) => continue,
                (true, false) => 0,
                (false, true) => 1,
                (true, true) => usize::from(from_high),
            };
            *seen = seen.saturating_add(1);
            let Some(number) = seen.checked_sub(wanted.skip).filter(|n| *n > 0) else { break };
            let flow = if number == 1 { wanted.name.clone() } else { format!("{}.{number}", wanted.name) };
            let (cca, src, dst) = (wanted.cca.clone(), wanted.src.clone(), wanted.dst.clone());
            let label =
                Label { flow: flow.into(), cca, src, dst, data: Some(data), sized: wanted.size_bytes.is_some() };
            return (label, wanted.size_bytes);
        }
        let (first, second) = if from_high { (high, low) } else { (low, high) };
        let flow = format!("{}:{}>{}:{}", first.0, first.1, second.0, second.1);
        (Label { flow: flow.into(), ..Label::default() }, None)
    }
}
