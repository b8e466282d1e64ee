// SPDX-License-Identifier: Apache-2.0
//! Names in a batch, each once, so that memory does not grow with the number of flows.
#![forbid(unsafe_code)]

#[derive(Debug, Default)]
pub struct Words {
    /// Counts batches.
    batch: u32,
    list: Vec<String>,
}

/// Where a name stands in the batch `batch`, counted from 1 on, so that 0 is nobody's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    batch: u32,
    place: u32,
}

impl Words {
    /// The place of `text` in the batch. `known` keeps it for the next time.
    #[inline(always)]
    pub fn word(&mut self, known: &mut Known, text: &str) -> u32 {
        let batch = self.batch.wrapping_add(1);
        if known.batch != batch {
            self.add(known, text, batch);
        }
        known.place
    }

    #[cold]
    fn add(&mut self, known: &mut Known, text: &str, batch: u32) {
        *known = Known { batch, place: self.list.len() as u32 };
        self.list.push(text.to_owned());
    }

    /// The words of the batch that is over.
    pub fn take(&mut self) -> Vec<String> {
        self.batch = self.batch.wrapping_add(1);
        std::mem::take(&mut self.list)
    }
}
