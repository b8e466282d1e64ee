// SPDX-License-Identifier: Apache-2.0
//! Connections: both directions, the table that finds them, the rows that they leave.
#![forbid(unsafe_code)]

pub mod connection;
pub mod rows;
pub mod table;
