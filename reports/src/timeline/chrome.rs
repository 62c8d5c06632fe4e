//! Chrome's trace events in JSON: an object a line, times in microseconds.

use super::encoder::{Encoder, Fact, Slice, Track};
use std::io::Write;

/// The encoder.
#[derive(Debug, Default)]
pub(super) struct Chrome {
    /// Whether an event has been written.
    begun: bool,
}

impl Encoder for Chrome {
    fn begin(&mut self, out: &mut Vec<u8>, realtime: Option<u64>) {
        put(out, format_args!(r#"{{"displayTimeUnit":"ns","#));
        if let Some(realtime) = realtime {
            // A string: a double would lose digits.
            put(out, format_args!(r#""otherData":{{"start_ns_since_1970":"{realtime}"}},"#));
        }
        put(out, format_args!(r#""traceEvents":["#));
    }

    fn process(&mut self, out: &mut Vec<u8>, process: u32, name: &str) {
        let pid = u64::from(process) + 1;
        self.next(out);
        put(out, format_args!(r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"#));
        text(out, name);
        put(out, format_args!("}}}}"));
    }

    fn track(&mut self, out: &mut Vec<u8>, number: u32, track: &Track) {
        let (pid, tid) = ids(number, track);
        self.next(out);
        put(out, format_args!(r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{{"name":"#));
        text(out, &track.name);
        put(out, format_args!("}}}}"));
        if track.below.is_none() {
            self.next(out);
            put(
                out,
                format_args!(
                    r#"{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{tid},"args":{{"sort_index":{}}}}}"#,
                    track.thread
                ),
            );
        }
    }

    fn slice(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, slice: &Slice<'_>) {
        let (pid, tid) = ids(number, track);
        let (begin, length) = (Micros(slice.begin), Micros(slice.end - slice.begin));
        self.next(out);
        put(
            out,
            format_args!(
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{begin},"dur":{length},"cat":"mpi","name":"#
            ),
        );
        text(out, slice.name);
        if !slice.facts.is_empty() {
            put(out, format_args!(r#","args":{{"#));
            for (place, (name, fact)) in slice.facts.iter().enumerate() {
                put(out, format_args!(r#"{}"{name}":"#, if place > 0 { "," } else { "" }));
                match *fact {
                    // A string: a double would lose digits.
                    Fact::Number(value) if value >> 53 != 0 => put(out, format_args!(r#""{value}""#)),
                    Fact::Number(value) => put(out, format_args!("{value}")),
                    Fact::Signed(value) => put(out, format_args!("{value}")),
                    Fact::Text(value) => text(out, value),
                }
            }
            out.push(b'}');
        }
        out.push(b'}');
        let mut arrow = |end: &str, at: u64, flow: u64| {
            self.next(out);
            let at = Micros(at);
            put(
                out,
                format_args!(
                    r#"{{"ph":{end},"pid":{pid},"tid":{tid},"ts":{at},"cat":"message","name":"message","id":"{flow:#x}"}}"#
                ),
            );
        };
        slice.sends.iter().for_each(|&flow| arrow(r#""s""#, slice.begin, flow));
        // Within the slice, but not before the send, which a receive may precede.
        let received = slice.begin.max(slice.end.saturating_sub(1));
        slice.receives.iter().for_each(|&flow| arrow(r#""f","bp":"e""#, received, flow));
    }

    fn counter_track(&mut self, _: &mut Vec<u8>, _: u32, _: &Track) {}

    fn counter(&mut self, out: &mut Vec<u8>, _: u32, track: &Track, at: u64, value: f64) {
        let pid = u64::from(track.process) + 1;
        self.next(out);
        put(out, format_args!(r#"{{"ph":"C","pid":{pid},"ts":{},"name":"#, Micros(at)));
        text(out, &track.name);
        put(out, format_args!(r#","args":{{"busy":{value}}}}}"#));
    }

    fn open(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64, name: &str) {
        let (pid, tid) = ids(number, track);
        self.next(out);
        put(out, format_args!(r#"{{"ph":"B","pid":{pid},"tid":{tid},"ts":{},"name":"#, Micros(at)));
        text(out, name);
        out.push(b'}');
    }

    fn close(&mut self, out: &mut Vec<u8>, number: u32, track: &Track, at: u64) {
        let (pid, tid) = ids(number, track);
        self.next(out);
        put(out, format_args!(r#"{{"ph":"E","pid":{pid},"tid":{tid},"ts":{}}}"#, Micros(at)));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        put(out, format_args!("\n]}}\n"));
    }

    fn names(&self) -> u64 {
        0
    }
}

impl Chrome {
    /// Writes the separator between events.
    fn next(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"\n" });
    }
}

/// Process and thread of a track; nested tracks are threads of their own, numbered after all ranks.
fn ids(number: u32, track: &Track) -> (u64, u64) {
    let thread = match track.below {
        None => u64::from(track.thread),
        Some(_) => (1 << u32::BITS) + u64::from(number),
    };
    (u64::from(track.process) + 1, thread + 1)
}

/// Nanoseconds, shown as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

fn put(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(what);
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Text becomes JSON, and writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}
