//! An archive of OTF2 is refused, or becomes a capture. The input is the lengths of its definitions and of those of its location, 16 bits
//! each, then these, then the events.
#![no_main]

/// An anchor: version 3, chunks of 512 bytes, POSIX, not compressed, one location, made by Score-P.
const ANCHOR: &[u8] = b"\x03\x42OTF2\0\x03\x02\x03\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x01\x01\
    \x01\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0m\0Score-P\0d\0";

vef_fuzz::target!(256, |bytes| {
    let Some((&[a, b, c, d], rest)) = bytes.split_first_chunk() else { return };
    let split = |bytes: &'_ [u8], at: [u8; 2]| usize::from(u16::from_le_bytes(at)).min(bytes.len());
    let (definitions, rest) = rest.split_at(split(rest, [a, b]));
    let (local, events) = rest.split_at(split(rest, [c, d]));
    let files = [("X.otf2", ANCHOR), ("X.def", definitions), ("X/0.def", local), ("X/0.evt", events)];
    vef_fuzz::tools::import(&files);
});
