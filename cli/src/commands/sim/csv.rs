//! Tables of a simulation report as CSV.

use crate::output::Failure;
use crate::simulation_args::Table;
use sim_example::{LinkReport, LinksReport, OfKind, OfSize, OverTime, Report, TaskTimes};
use std::fmt::Write;

/// The header and rows of a table.
pub fn table(table: Table, report: &Report) -> Result<String, Failure> {
    let mut out = String::new();
    match table {
        Table::Ranks => ranks(&mut out, report),
        Table::Kinds => kinds(&mut out, report),
        Table::Sizes => sizes(&mut out, report),
        Table::Links => links(&mut out, &report.links),
        Table::Time => time(&mut out, report),
        Table::Sources => sources(&mut out, &report.links),
        Table::Points => {
            let tables = "write ranks, kinds, sizes, links, time or sources";
            return Err(format!("--csv: {tables}; only a sweep has a table of points").into());
        }
    }?;
    out.truncate(out.trim_end().len());
    Ok(out)
}

/// Quotes a field with commas, such as the name of a router in a torus.
pub fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn ranks(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "job,rank,finish_ps,computing_ps,sending_ps,waiting_ps,collectives_ps")?;
    for (number, job) in report.jobs.iter().enumerate() {
        for ((rank, finish), times) in (0..).zip(&job.finish_ps.tasks).zip(&job.ranks) {
            let TaskTimes { computing, sending, waiting, collectives } = times;
            let rank: u32 = rank;
            writeln!(
                out,
                "{number},{rank},{},{},{},{},{}",
                finish.0, computing.0, sending.0, waiting.0, collectives.0
            )?;
        }
    }
    Ok(())
}

fn latency(latency: &sim_example::Latency) -> String {
    let sim_example::Latency { messages, min, mean, p50, p90, p99, max } = latency;
    format!("{messages},{},{},{},{},{},{}", min.0, mean.0, p50.0, p90.0, p99.0, max.0)
}

const LATENCY: &str = "measured,min_ps,mean_ps,p50_ps,p90_ps,p99_ps,max_ps";

fn kinds(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "kind,messages,bytes,{LATENCY}")?;
    for OfKind { kind, amount, latency_ps } in &report.kinds {
        writeln!(out, "{kind},{},{},{}", amount.messages, amount.bytes.0, latency(latency_ps))?;
    }
    Ok(())
}

fn sizes(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "from_bytes,to_bytes,{LATENCY}")?;
    for OfSize { from_bytes, to_bytes, latency_ps } in &report.sizes {
        writeln!(out, "{},{},{}", from_bytes.0, to_bytes.0, latency(latency_ps))?;
    }
    Ok(())
}

fn links(out: &mut String, links: &LinksReport) -> std::fmt::Result {
    writeln!(
        out,
        "link,bandwidth_bits_per_s,latency_ps,messages,bytes,busy_ps,utilisation,waited_ps,longest_wait_ps,longest_queue_bytes,\
         blocked_ps"
    )?;
    for link in links.all.iter().flatten() {
        let LinkReport { bandwidth, latency_ps, amount, busy_ps, utilisation, .. } = link;
        writeln!(
            out,
            "{},{},{},{},{},{},{utilisation:.9},{},{},{},{}",
            field(&link.link),
            bandwidth.bits_per_second(),
            latency_ps.0,
            amount.messages,
            amount.bytes.0,
            busy_ps.0,
            link.waited_ps.0,
            link.longest_wait_ps.0,
            link.longest_queue.0,
            link.blocked_ps.0
        )?;
    }
    Ok(())
}

/// Links with their use over time.
fn over_time(links: &LinksReport) -> impl Iterator<Item = (&LinkReport, &OverTime)> {
    links.all.iter().flatten().filter_map(|link| Some((link, link.over_time.as_ref()?)))
}

fn time(out: &mut String, report: &Report) -> std::fmt::Result {
    let width = report.links.bin_ps.unwrap_or_default();
    writeln!(out, "link,from_ps,to_ps,bytes,busy,blocked")?;
    for (link, OverTime { busy, blocked, bytes_over_time, .. }) in over_time(&report.links) {
        for (bin, ((busy, blocked), bytes)) in (0..).zip(busy.iter().zip(blocked).zip(bytes_over_time)) {
            let (from, to) = (bin * width.0, ((bin + 1) * width.0).min(report.runtime_ps.0));
            writeln!(out, "{},{from},{to},{bytes},{busy:.9},{blocked:.9}", field(&link.link))?;
        }
    }
    Ok(())
}

fn sources(out: &mut String, links: &LinksReport) -> std::fmt::Result {
    writeln!(out, "link,job,rank,bytes")?;
    for (link, OverTime { sources, .. }) in over_time(links) {
        for source in sources {
            writeln!(out, "{},{},{},{}", field(&link.link), source.job, source.task.0, source.bytes.0)?;
        }
    }
    Ok(())
}
