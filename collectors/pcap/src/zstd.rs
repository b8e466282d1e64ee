// SPDX-License-Identifier: Apache-2.0
//! Concatenated zstd frames as one stream, with the decoder's own bound on the window (100 MiB) in force.
#![forbid(unsafe_code)]

use std::io::{self, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

type Input = Box<dyn Read + Send>;

/// An input with a byte put back, so that the end of the input can be told from a further frame.
struct PutBack {
    byte: Option<u8>,
    input: Input,
}

impl Read for PutBack {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(byte), Some(first)) = (self.byte, buffer.first_mut()) {
            *first = byte;
            self.byte = None;
            return Ok(1);
        }
        self.input.read(buffer)
    }
}

/// Reads one frame after the other until the input ends.
pub struct Frames {
    frame: Option<StreamingDecoder<PutBack, FrameDecoder>>,
    input: Option<PutBack>,
}

impl Frames {
    pub fn new(input: Input) -> Self {
        Frames { frame: None, input: Some(PutBack { byte: None, input }) }
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(buffer)?;
                if n > 0 || buffer.is_empty() {
                    return Ok(n);
                }
            }
            if let Some(frame) = self.frame.take() {
                self.input = Some(frame.into_inner());
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            let mut first = [0u8; 1];
            if input.read(&mut first)? == 0 {
                return Ok(0);
            }
            let [byte] = first;
            input.byte = Some(byte);
            self.frame = Some(StreamingDecoder::new(input).map_err(io::Error::other)?);
        }
    }
}
