// SPDX-License-Identifier: Apache-2.0
//! The tables `path` (every packet between two points) and `path_flows`.
#![forbid(unsafe_code)]

use crate::write::columns::Kind::{Bool, F64, I64, Text};
use crate::write::columns::{Field, field, nullable};

pub const PACKETS: &[Field] = &[
    field("time_ns", I64),
    field("t_s", F64),
    field("flow", Text),
    field("a_to_b", Bool),
    field("wire_bytes", I64),
    field("payload_bytes", I64),
    nullable("delay_us", F64),
    nullable("queue_us", F64),
];

pub const FLOWS: &[Field] = &[
    field("flow", Text),
    field("forward", Bool),
    nullable("a_to_b", Bool),
    field("delivered_packets", I64),
    field("lost_packets", I64),
    field("missed_packets", I64),
    nullable("loss_ratio", F64),
    nullable("delay_min_us", F64),
    nullable("delay_mean_us", F64),
    nullable("delay_p95_us", F64),
    nullable("delay_max_us", F64),
];
