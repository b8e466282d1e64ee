// SPDX-License-Identifier: Apache-2.0
//! Names in a batch, each once, so that memory does not grow with the number of flows.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Words {
    /// Counts batches; `known` holds it from 1 on in its upper half, so that 0 is nobody's word.
    batch: u32,
    list: Vec<String>,
}

impl Words {
    /// The place of `text` in the batch. `known` keeps it for the next time; nobody else writes it meanwhile.
    #[inline(always)]
    pub fn word(&mut self, known: &AtomicU64, text: &str) -> u32 {
        let batch = u64::from(self.batch.wrapping_add(1)) << 32;
        let place = known.load(Ordering::Relaxed);
        if place >> 32 << 32 == batch {
            return place as u32;
        }
        self.add(known, text, batch)
    }

    #[cold]
    fn add(&mut self, known: &AtomicU64, text: &str, batch: u64) -> u32 {
        let place = self.list.len() as u32;
        self.list.push(text.to_owned());
        known.store(batch | u64::from(place), Ordering::Relaxed);
        place
    }

    /// The words of the batch that is over.
    pub fn take(&mut self) -> Vec<String> {
        self.batch = self.batch.wrapping_add(1);
        std::mem::take(&mut self.list)
    }
}
