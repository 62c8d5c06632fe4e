//! The report as text.

use std::fmt::{self, Write};

use vef_format::units::{Grouped, Picos};

use crate::accounts::TaskTimes;
use crate::critical::{CriticalPath, CriticalRank, CriticalStep};
use crate::noise::{Deviations, NoiseReport};
use crate::report::{
    Amount, ComputingReport, Finish, Ideal, JobReport, JobSpan, Latency, LinkReport, LinksReport,
    NetworkReport, OfKind, OfSize, Performance, Report,
};

/// Most busiest links shown.
const NAMED: usize = 5;

impl Report {
    /// The report as text of 15 to 30 lines.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        let NetworkReport { topology, routing, nodes, links, model, bandwidth, latency_ps, loggp, .. } =
            &self.network;
        match loggp {
            Some(parameters) => writeln!(out, "network       {nodes} nodes, {model}, {parameters}")?,
            None => writeln!(
                out,
                "network       {topology}: {nodes} nodes, {links} links of {bandwidth} and {latency_ps}, {model}, {routing}"
            )?,
        }
        match self.ideal {
            Some(Ideal { runtime_ps, slowdown }) => writeln!(
                out,
                "run time      {}; without contention {runtime_ps}: slowdown {slowdown:.3}",
                self.runtime_ps
            )?,
            None => writeln!(out, "run time      {}", self.runtime_ps)?,
        }
        for (
            number,
            JobReport { trace, tasks, finish_ps, span, computing, times, ranks, not_in_trace, .. },
        ) in self.jobs.iter().enumerate()
        {
            if self.jobs.len() > 1 {
                writeln!(out, "job {number:<9} {}", trace.as_deref().unwrap_or("from memory"))?;
            }
            let Finish { min, mean, max, .. } = finish_ps;
            writeln!(out, "tasks         {tasks}; finished from {min} to {max}, mean {mean}")?;
            if let Some(JobSpan { initialisation_ps, from_init, captured_ps, simulated_ps }) = span {
                write!(out, "  from the last MPI_Init to the last MPI_Finalize {simulated_ps}")?;
                if let Some(captured) = captured_ps {
                    write!(out, ", captured {captured} (longest rank)")?;
                }
                let left_out = if *from_init { "left out" } else { "as captured" };
                writeln!(out, "; MPI_Init ({left_out}) {initialisation_ps}")?;
            }
            if !ranks.is_empty() {
                writeln!(out, "  {}", Times(times))?;
            }
            write_computing(out, computing)?;
            for what in not_in_trace {
                writeln!(out, "  not in the trace: {what}")?;
            }
        }
        let total = Amount { messages: self.messages, bytes: self.bytes };
        writeln!(out, "messages      {total}")?;
        for OfKind { kind, amount, latency_ps: Latency { messages, p50, p99, .. } } in &self.kinds {
            write!(out, "  {:<20}  {amount}", kind.to_string())?;
            // Messages within nodes have no network latency.
            match messages {
                0 => writeln!(out)?,
                _ => writeln!(out, ", latency p50 {}, p99 {}", Quantile(*p50), Quantile(*p99))?,
            }
        }
        if self.collectives_split_evenly > 0 {
            let split = self.collectives_split_evenly;
            writeln!(
                out,
                "  {split} collectives split evenly: the trace has only sums; a container has the counts"
            )?;
        }
        if self.same_node.messages > 0 {
            writeln!(out, "  of which in a node    {}", self.same_node)?;
        }
        let Latency { messages, min, mean, p50, p90, p99, max } = self.latency_ps;
        match messages {
            0 => writeln!(out, "latency       no messages on the network")?,
            _ => {
                writeln!(out, "latency       min {min}, mean {mean}, max {max}")?;
                let [p50, p90, p99] = [p50, p90, p99].map(Quantile);
                writeln!(out, "              p50 {p50}, p90 {p90}, p99 {p99}")?;
            }
        }
        self.write_sizes(out)?;
        if loggp.is_none() {
            self.write_links(out)?;
        }
        if let Some(path) = &self.critical_path {
            self.write_path(out, path)?;
        }
        let Performance { wall_s, events, events_per_s, .. } = self.performance;
        write!(out, "simulated in  {wall_s:.3} s, {} events", Grouped(events))?;
        match events_per_s {
            Some(rate) => writeln!(out, ", {:.2} million per second", rate * 1e-6),
            None => writeln!(out),
        }
    }

    /// Use of the links, and the busiest.
    fn write_links(&self, out: &mut String) -> fmt::Result {
        let links = self.network.links;
        let LinksReport { used, utilisation_max, utilisation_mean, busiest, .. } = &self.links;
        let (max, mean) = (100.0 * utilisation_max, 100.0 * utilisation_mean);
        writeln!(out, "links         {used} of {links} used; busy at most {max:.2} %, mean {mean:.2} %")?;
        let named = &busiest[..busiest.len().min(NAMED)];
        let width = named.iter().map(|link| link.link.len()).max().unwrap_or(0);
        for LinkReport { link, utilisation, amount, longest_queue, .. } in named {
            write!(out, "  {link:<width$}  {:6.2} %  {amount}", 100.0 * utilisation)?;
            match longest_queue.0 {
                0 => writeln!(out)?,
                _ => writeln!(out, ", largest queue {longest_queue}")?,
            }
        }
        Ok(())
    }

    /// The critical path.
    fn write_path(&self, out: &mut String, path: &CriticalPath) -> fmt::Result {
        let share = |time: Picos| Share(time, self.runtime_ps);
        let parts = [
            ("before the start", path.before_start_ps),
            ("computing", path.computing_ps),
            ("transmission", path.transmission_ps),
            ("queueing", path.queueing_ps),
            ("latency", path.latency_ps),
            ("overhead", path.overhead_ps),
            ("memory", path.memory_ps),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, time)| time.0 > 0)
            .map(|(name, time)| format!("{name} {}", share(*time)))
            .collect();
        writeln!(out, "critical path {} messages: {}", Grouped(path.messages), parts.join(", "))?;
        let named = &path.links[..path.links.len().min(NAMED)];
        let width = named.iter().map(|link| link.link.len()).max().unwrap_or(0);
        for link in named {
            let (sent, queued) = (share(link.transmission_ps), share(link.queueing_ps));
            write!(out, "  {:<width$}  transmission {sent}, queueing {queued}", link.link)?;
            match link.runtime_if_twice_as_fast_ps {
                Some(then) => {
                    let change = 100.0 * (then.0 as f64 / self.runtime_ps.0.max(1) as f64 - 1.0);
                    writeln!(out, "; with twice its bandwidth the run takes {then} ({change:+.1} %)")?;
                }
                None => writeln!(out)?,
            }
        }
        for CriticalRank { job, task, computing_ps } in path.ranks.iter().take(NAMED) {
            writeln!(out, "  {}rank {task} computes {}", OfJob(*job), share(*computing_ps))?;
        }
        let mut longest: Vec<&CriticalStep> = path.steps.iter().collect();
        longest.sort_by_key(|step| std::cmp::Reverse(step.length_ps()));
        longest.truncate(NAMED);
        longest.sort_by_key(|step| step.from_ps());
        for step in longest {
            write!(out, "  at {} for {}: ", step.from_ps(), step.length_ps())?;
            match *step {
                CriticalStep::Computing { job, task, record: Some(record), .. } => {
                    writeln!(out, "{}rank {task} computes before its record {record}", OfJob(job))?;
                }
                CriticalStep::Computing { job, task, record: None, .. } => {
                    writeln!(out, "{}rank {task} computes to the end", OfJob(job))?;
                }
                CriticalStep::Message { job, task, to_task, bytes, kind, queueing_ps, record, .. } => {
                    write!(
                        out,
                        "{}{bytes} from rank {task} (record {record}, {kind}) to rank {to_task}",
                        OfJob(job)
                    )?;
                    match queueing_ps.0 {
                        0 => writeln!(out)?,
                        _ => writeln!(out, ", of which queueing {queueing_ps}")?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Latency by size, if there is more than one size class.
    fn write_sizes(&self, out: &mut String) -> fmt::Result {
        if self.sizes.len() < 2 {
            return Ok(());
        }
        for OfSize { from_bytes, to_bytes, latency_ps: Latency { messages, p50, p90, p99, .. } } in
            &self.sizes
        {
            let size = match from_bytes == to_bytes {
                true => format!("{} B", Grouped(from_bytes.0)),
                false => format!("{} to {} B", Grouped(from_bytes.0), Grouped(to_bytes.0)),
            };
            let [p50, p90, p99] = [*p50, *p90, *p99].map(Quantile);
            writeln!(out, "  {size:<24} {:>12}: p50 {p50}, p90 {p90}, p99 {p99}", Grouped(*messages))?;
        }
        Ok(())
    }
}

/// A quantile of latencies, which is up to 1/128 too great: in three digits.
#[derive(Clone, Copy)]
struct Quantile(Picos);

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Picos(exact)) = *self;
        let unit = 10u64.pow(exact.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let shown = Picos(exact.saturating_add(unit / 2) / unit * unit).to_string();
        match shown.rsplit_once(' ') {
            Some((number, unit)) if number.contains('.') => {
                write!(f, "{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => f.write_str(&shown),
        }
    }
}

/// How computing times differ from those of the trace.
fn write_computing(out: &mut String, computing: &ComputingReport) -> fmt::Result {
    if let Some(scale) = &computing.scale {
        writeln!(out, "  computing times of the trace × {scale}")?;
    }
    let Some(NoiseReport { model, places, divided, replaced, kept, deviations }) = &computing.noise else {
        return Ok(());
    };
    writeln!(
        out,
        "  noise {model}: {} computing times at {} places ({} with several kinds of work), {} kept; time over the typical time:",
        Grouped(*replaced),
        Grouped(*places),
        Grouped(*divided),
        Grouped(*kept)
    )?;
    for Deviations { from_ps, records, mean, p10, p50, p90, p99, max } in deviations {
        writeln!(
            out,
            "    from {from_ps:<8} {:>12}: mean {mean:.3}, p10 {p10:.3}, p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, max {max:.3}",
            Grouped(*records)
        )?;
    }
    Ok(())
}

/// A time as a share of another.
struct Share(Picos, Picos);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", 100.0 * self.0.0 as f64 / self.1.0.max(1) as f64)
    }
}

/// `job 2, `; empty for job 0.
struct OfJob(u32);

impl fmt::Display for OfJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, "job {}, ", self.0) } else { Ok(()) }
    }
}

/// The times of tasks as shares.
struct Times<'a>(&'a TaskTimes);

impl fmt::Display for Times<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskTimes { computing, sending, waiting, collectives } = self.0;
        let total = self.0.total().0.max(1) as f64;
        let states = [
            ("computing", computing),
            ("sending", sending),
            ("waiting", waiting),
            ("in collectives", collectives),
        ];
        let mut first = true;
        for (name, time) in states.into_iter().filter(|(name, time)| time.0 > 0 || *name == "computing") {
            let comma = if std::mem::take(&mut first) { "" } else { ", " };
            write!(f, "{comma}{name} {:.1} %", 100.0 * time.0 as f64 / total)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_three_digits() {
        for (exact, shown) in [
            (402_653_184, "403 µs"),
            (1_234_567, "1.23 µs"),
            (20_049, "20 ns"),
            (999_600, "1 µs"),
            (999, "999 ps"),
            (0, "0 ps"),
            (1_234_500_000_000_000, "1 230 s"),
        ] {
            assert_eq!(Quantile(Picos(exact)).to_string(), shown);
        }
    }
}
