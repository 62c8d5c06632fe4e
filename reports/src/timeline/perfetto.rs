//! Perfetto's protocol buffers: a sequence of packets, field numbers as in its `trace_packet.proto` and `track_event.proto`.
//!
//! A slice is two packets, its begin and its end. Names are defined once and then referred to by number.

use super::encoder::{Encoder, Fact, Slice, Track};
use std::collections::HashMap;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const CLOCKS: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK: u32 = 60;
}

/// Fields of `TrackDescriptor`, `ProcessDescriptor` and `ThreadDescriptor`.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const PID: u32 = 1;
    pub(super) const TID: u32 = 2;
    pub(super) const THREAD_NAME: u32 = 5;
    pub(super) const PROCESS_NAME: u32 = 6;
}

/// Fields of `CounterDescriptor`.
mod counter {
    pub(super) const UNIT_NAME: u32 = 6;
    /// Counters with the same key share a scale.
    pub(super) const SCALE: u32 = 7;
}

/// Fields of `TrackEvent` and `DebugAnnotation`.
mod event {
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const FLOW: u32 = 47;
    pub(super) const ENDING_FLOW: u32 = 48;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
    pub(super) const VALUE: u32 = 44;
    pub(super) const ANNOTATION_NAME: u32 = 1;
    pub(super) const UNSIGNED: u32 = 3;
    pub(super) const SIGNED: u32 = 4;
    pub(super) const TEXT: u32 = 6;
}

/// Fields of `InternedData`.
mod interned {
    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const ANNOTATION_NAMES: u32 = 3;
}

/// Bits of `sequence_flags`.
const NOTHING_INTERNED: u64 = 1;
const NEEDS_INTERNED: u64 = 2;

/// `ClockSnapshot`'s numbers of clocks.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;

/// The encoder, with the names that were defined.
#[derive(Debug, Default)]
pub(super) struct Perfetto {
    names: HashMap<String, u64>,
    annotations: Vec<&'static str>,
    packet: Vec<u8>,
    event: Vec<u8>,
    inner: Vec<u8>,
    /// Names that the current packet defines.
    interned: Vec<u8>,
}

impl Encoder for Perfetto {
    fn begin(&mut self, out: &mut Vec<u8>, realtime: Option<u64>) {
        self.packet.clear();
        number(&mut self.packet, packet::SEQUENCE, 1);
        number(&mut self.packet, packet::SEQUENCE_FLAGS, NOTHING_INTERNED);
        if let Some(realtime) = realtime {
            self.event.clear();
            for (clock, now) in [(BOOTTIME, 0), (REALTIME, realtime)] {
                self.inner.clear();
                number(&mut self.inner, 1, clock);
                number(&mut self.inner, 2, now);
                bytes(&mut self.event, 1, &self.inner);
            }
            bytes(&mut self.packet, packet::CLOCKS, &self.event);
        }
        bytes(out, 1, &self.packet);
    }

    fn process(&mut self, out: &mut Vec<u8>, process: u32, name: &str) {
        self.inner.clear();
        number(&mut self.inner, track::PID, u64::from(process) + 1);
        bytes(&mut self.inner, track::PROCESS_NAME, name.as_bytes());
        self.event.clear();
        number(&mut self.event, track::UUID, uuid_of_process(process));
        bytes(&mut self.event, track::PROCESS, &self.inner);
        self.track_packet(out);
    }

    fn track(&mut self, out: &mut Vec<u8>, track_number: u32, track: &Track) {
        self.event.clear();
        number(&mut self.event, track::UUID, uuid(track_number));
        match track.below {
            Some(below) => {
                bytes(&mut self.event, track::NAME, track.name.as_bytes());
                number(&mut self.event, track::PARENT, uuid(below));
            }
            None => {
                self.inner.clear();
                number(&mut self.inner, track::PID, u64::from(track.process) + 1);
                number(&mut self.inner, track::TID, u64::from(track.thread) + 1);
                bytes(&mut self.inner, track::THREAD_NAME, track.name.as_bytes());
                bytes(&mut self.event, track::THREAD, &self.inner);
            }
        }
        self.track_packet(out);
    }

    fn slice(&mut self, out: &mut Vec<u8>, track: u32, _: &Track, slice: &Slice<'_>) {
        self.begin_event(track, slice.name);
        for (name, fact) in slice.facts {
            let name = self.annotation(name);
            self.inner.clear();
            number(&mut self.inner, event::ANNOTATION_NAME, name);
            match *fact {
                Fact::Number(value) => number(&mut self.inner, event::UNSIGNED, value),
                Fact::Signed(value) => number(&mut self.inner, event::SIGNED, value as u64),
                Fact::Text(value) => bytes(&mut self.inner, event::TEXT, value.as_bytes()),
            }
            bytes(&mut self.event, event::ANNOTATION, &self.inner);
        }
        for &flow in slice.sends.iter() {
            fixed(&mut self.event, event::FLOW, flow);
        }
        self.event_packet(out, slice.begin);
        self.end_event(track);
        // At the end: viewers drop an arrow that ends before it begins, and a receive may begin before the send.
        for &flow in slice.receives {
            fixed(&mut self.event, event::ENDING_FLOW, flow);
        }
        self.event_packet(out, slice.end);
    }

    fn counter_track(&mut self, out: &mut Vec<u8>, track_number: u32, track: &Track) {
        self.inner.clear();
        bytes(&mut self.inner, counter::UNIT_NAME, b"%");
        bytes(&mut self.inner, counter::SCALE, b"busy");
        self.event.clear();
        number(&mut self.event, track::UUID, uuid(track_number));
        bytes(&mut self.event, track::NAME, track.name.as_bytes());
        number(&mut self.event, track::PARENT, uuid_of_process(track.process));
        bytes(&mut self.event, track::COUNTER, &self.inner);
        self.track_packet(out);
    }

    fn counter(&mut self, out: &mut Vec<u8>, track: u32, _: &Track, at: u64, value: f64) {
        self.event.clear();
        number(&mut self.event, event::TYPE, event::COUNTER);
        number(&mut self.event, event::TRACK, uuid(track));
        fixed(&mut self.event, event::VALUE, value.to_bits());
        self.event_packet(out, at);
    }

    fn open(&mut self, out: &mut Vec<u8>, track: u32, _: &Track, at: u64, name: &str) {
        self.begin_event(track, name);
        self.event_packet(out, at);
    }

    fn close(&mut self, out: &mut Vec<u8>, track: u32, _: &Track, at: u64) {
        self.end_event(track);
        self.event_packet(out, at);
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn names(&self) -> u64 {
        // Each name takes two tags, two lengths and a number besides.
        let names = self.names.keys().map(String::as_str).chain(self.annotations.iter().copied());
        names.map(|name| name.len() as u64 + 32).sum()
    }
}

impl Perfetto {
    fn begin_event(&mut self, track: u32, name: &str) {
        let next = self.names.len() as u64 + 1;
        let name = match self.names.get(name) {
            Some(&known) => known,
            None => {
                self.names.insert(name.to_owned(), next);
                self.intern(interned::EVENT_NAMES, next, name);
                next
            }
        };
        self.event.clear();
        number(&mut self.event, event::TYPE, event::BEGIN);
        number(&mut self.event, event::TRACK, uuid(track));
        number(&mut self.event, event::NAME, name);
    }

    fn end_event(&mut self, track: u32) {
        self.event.clear();
        number(&mut self.event, event::TYPE, event::END);
        number(&mut self.event, event::TRACK, uuid(track));
    }

    /// The number of an annotation's name.
    fn annotation(&mut self, name: &'static str) -> u64 {
        let known = self.annotations.iter().position(|known| *known == name);
        let place = known.unwrap_or(self.annotations.len());
        if known.is_none() {
            self.annotations.push(name);
            self.intern(interned::ANNOTATION_NAMES, place as u64 + 1, name);
        }
        place as u64 + 1
    }

    fn intern(&mut self, field: u32, number_of_it: u64, name: &str) {
        self.inner.clear();
        number(&mut self.inner, 1, number_of_it);
        bytes(&mut self.inner, 2, name.as_bytes());
        bytes(&mut self.interned, field, &self.inner);
    }

    fn event_packet(&mut self, out: &mut Vec<u8>, at: u64) {
        self.packet.clear();
        number(&mut self.packet, packet::TIMESTAMP, at);
        number(&mut self.packet, packet::SEQUENCE, 1);
        bytes(&mut self.packet, packet::EVENT, &self.event);
        if !self.interned.is_empty() {
            bytes(&mut self.packet, packet::INTERNED, &self.interned);
            self.interned.clear();
        }
        number(&mut self.packet, packet::SEQUENCE_FLAGS, NEEDS_INTERNED);
        bytes(out, 1, &self.packet);
    }

    fn track_packet(&mut self, out: &mut Vec<u8>) {
        self.packet.clear();
        number(&mut self.packet, packet::SEQUENCE, 1);
        bytes(&mut self.packet, packet::TRACK, &self.event);
        bytes(out, 1, &self.packet);
    }
}

/// 0 is the root of all tracks.
fn uuid(track: u32) -> u64 {
    u64::from(track) + 1
}

fn uuid_of_process(process: u32) -> u64 {
    (1 << u32::BITS) + 1 + u64::from(process)
}

/// Wire types.
const VARINT: u32 = 0;
const FIXED: u32 = 1;
const LENGTH: u32 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, wire: u32) {
    varint(out, u64::from(field << 3 | wire));
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, FIXED);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    tag(out, field, LENGTH);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
