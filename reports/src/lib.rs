//! What people see: traces and captures, added up and made readable.
//!
//! ```
//! use replay::{Extent, yardstick::default_link};
//! use reports::report::{Report, Section};
//! use reports::stats::Stats;
//! use reports::yardstick;
//! use results::table::TextStyle;
//!
//! // Task 0 computes for 1 µs and sends 1250 bytes, for which task 1 waits.
//! let directory = tempfile::tempdir()?;
//! let trace = directory.path().join("trace.vef");
//! std::fs::write(&trace, "VEF3 2 2 0 0 0 0 1000\n0 0 1 1250 4 1000 -1\n1 1 1 0 2 500 0\n")?;
//!
//! // One pass over the records.
//! let stats = Stats::of_trace(&trace, &Extent::default(), &mut |_| {})?;
//! let mut report = Report::new(&trace, &stats);
//! assert_eq!((report.data.totals.messages.0, report.data.totals.bytes.0), (1, 1250));
//!
//! // What takes a replay: on a network of 1 µs and 10 Gbit/s, and on one that takes no time.
//! let replayed = yardstick::replay(&trace, &stats, None, &default_link(), &Extent::default(), &mut |_| {})?;
//! assert_eq!((replayed.runtime_ps.0, replayed.ideal_runtime_ps.0), (3_500_000, 1_500_000));
//! report.data.replayed = Some(replayed);
//!
//! // The same data as text, Markdown, CSV, JSON and a page.
//! let style = TextStyle { bars: true, ..TextStyle::WHOLE };
//! assert!(report.to_text(Some(Section::Pairs), &style).contains("1 250"));
//! assert!(report.to_page()?.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From a trace or capture to what is shown
//!
//! ```text
//! trace ───▶ stats ───────▶ report ─▶ text, Markdown, JSON, page (vef stats, vef report); its tables, by the crate `results`
//!   ╰──────▶ yardstick ───────╯
//!            a simulation ────╯       (vef report --sim)
//! trace, capture ─▶ timeline ─▶ Perfetto, Chrome (vef timeline)
//! capture ─▶ profile                counts, times and bytes of its functions (vef profile)
//!    ├─────▶ live                   what the ranks do now, while they run (vef run --live)
//!    ╰─────▶ text                   time-independent text traces, a line a call, and their aggregation (vef text)
//! ```
//!
//! | module | question | its files, in the order of reading |
//! |---|---|---|
//! | [`stats`] | what is counted | `collector.rs`, with `pairs.rs`, `sizes.rs`, `phases.rs`; `read.rs` feeds it by several threads |
//! | [`yardstick`] | what a replay adds | `watcher.rs`, with `bins.rs`, `under_way.rs`, `senders.rs`, `operations.rs` |
//! | [`report`] | what is in a report | `model.rs`, `replayed.rs` (the data), `describe.rs`, `who.rs` (from `stats` to it), `text.rs`, `page.rs` (how it is shown) |
//! | [`timeline`] | what each rank did when | `capture.rs`, `replayed.rs` (slices), `drawing.rs` (what fits), `perfetto.rs`, `chrome.rs` |
//!
//! This crate never calls MPI and never prints; its threads are those of the pool that it is called in.

#![forbid(unsafe_code)]

pub mod live;
pub mod profile;
pub mod report;
pub mod stats;
pub mod text;
pub mod timeline;
pub mod yardstick;

mod flow;
mod wildcards;
