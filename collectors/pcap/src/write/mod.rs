// SPDX-License-Identifier: Apache-2.0
//! Tables: their columns, the names of flows in them, and the files.
#![forbid(unsafe_code)]

pub mod acks;
pub mod columns;
pub mod flows;
pub mod intervals;
pub mod label;
pub mod path;
pub mod records;
pub mod tables;
pub mod words;
