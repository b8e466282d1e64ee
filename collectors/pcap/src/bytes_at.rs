// SPDX-License-Identifier: Apache-2.0
//! Fixed-size reads that cannot panic: `None` when the bytes are not there.
#![forbid(unsafe_code)]

#[inline(always)]
pub fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk::<N>().copied()
}

#[inline(always)]
pub fn be16(data: &[u8], at: usize) -> Option<u16> {
    array(data, at).map(u16::from_be_bytes)
}

#[inline(always)]
pub fn be32(data: &[u8], at: usize) -> Option<u32> {
    array(data, at).map(u32::from_be_bytes)
}

/// 16 bits in the byte order of the capture file.
#[inline(always)]
pub fn u16_as(data: &[u8], at: usize, big: bool) -> Option<u16> {
    array(data, at).map(|b| if big { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) })
}

/// 32 bits in the byte order of the capture file.
#[inline(always)]
pub fn u32_as(data: &[u8], at: usize, big: bool) -> Option<u32> {
    array(data, at).map(|b| if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
}
