//! A simulation as text.

use super::{
    Amount, ArrivalsReport, BackgroundReport, Captured, ComputingReport, CriticalLevel, CriticalPath,
    CriticalRank, CriticalStep, Deviations, Finish, Ideal, JobReport, JobSpan, Latency, LinkReport,
    LinksReport, NetworkReport, NoiseReport, OfKind, OfSize, PartReport, Performance, RunsReport, Simulation,
    WaitsReport,
};
use crate::by_state::ByState;
use crate::kind::Kind;
use crate::shown;
use crate::table;
use std::cmp::Reverse;
use std::fmt::{self, Write};
use vef_format::state::State;
use vef_format::units::{Bytes, Count, Grouped, Picos, Printable};
use vef_format::waits::{WaitingFor, WaitingIn};

/// Most busiest links shown.
const NAMED: usize = 5;

impl Simulation {
    /// Text of 15 to 30 lines.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        let NetworkReport { topology, routing, nodes, links, model, loggp, .. } = &self.network;
        match loggp {
            Some(parameters) => {
                writeln!(out, "network       {}, {model}, {parameters}", Count(*nodes, "node"))?;
            }
            None => {
                let network = &self.network;
                let of_all = |range: Option<[u64; 2]>, setting| range.unwrap_or([setting; 2]);
                let rate = range(of_all(network.range_bits_per_s, network.bandwidth_bits_per_s), shown::rate);
                let latency =
                    range(of_all(network.range_latency_ps, network.latency_ps), |ps| Picos(ps).to_string());
                writeln!(
                    out,
                    "network       {topology}: {}, {} of {rate} and {latency}, {model}, {routing}",
                    Count(*nodes, "node"),
                    Count(*links, "link")
                )?;
            }
        }
        if !self.network.failures.is_empty() {
            writeln!(out, "failures      {}", self.network.failures.join("; "))?;
        }
        for cut_off in &self.network.cut_off {
            writeln!(out, "cut off       {cut_off}")?;
        }
        write!(out, "run time      {}", Picos(self.runtime_ps))?;
        match self.ideal {
            Some(Ideal { runtime_ps, slowdown }) => {
                write!(out, "; without contention {}: slowdown {slowdown:.3}", Picos(runtime_ps))?;
                if let Some(own) = self.own_interfaces {
                    let own = Ideal::of(own.runtime_ps, runtime_ps).slowdown;
                    write!(out, ", by the senders' own interfaces alone {own:.3}")?;
                }
                writeln!(out)?;
            }
            None => writeln!(out)?,
        }
        let finished = self.jobs.iter().map(|job| job.start_ps.saturating_add(job.runtime_ps)).max();
        if let Some(finished) = finished.filter(|&finished| finished < self.runtime_ps) {
            let finished = Picos(finished);
            writeln!(
                out,
                "              all tasks have finished after {finished}; later only messages arrive that no task waits for"
            )?;
        }
        for (number, job) in self.jobs.iter().enumerate() {
            if self.jobs.len() > 1 {
                writeln!(out, "job {number:<9} {}", job.trace.as_deref().unwrap_or("from memory"))?;
            }
            job.write_text(out)?;
        }
        if let Some(arrivals) = &self.arrivals {
            let ArrivalsReport { wait_mean_ps, wait_max_ps, slowdown_mean, slowdown_max, .. } = arrivals;
            writeln!(
                out,
                "arrivals      {}, which had {:.1} % of the node time; wait mean {}, max {}; (wait + run) / run mean {slowdown_mean:.3}, max {slowdown_max:.3}",
                Count(arrivals.jobs.len() as u64, "job"),
                arrivals.utilisation * 100.0,
                Picos(*wait_mean_ps),
                Picos(*wait_max_ps),
            )?;
        }
        if let Some(BackgroundReport { traffic, messages, bytes, delivered, latency_mean_ps }) =
            &self.background
        {
            let amount = Amount { messages: *messages, bytes: *bytes };
            let (delivered, mean) = (Grouped(*delivered), Picos(*latency_mean_ps));
            writeln!(out, "background    {traffic}: {amount}, {delivered} arrived, latency mean {mean}")?;
        }
        if let Some(congestion) = &self.congestion {
            writeln!(out, "congestion    {congestion}")?;
        }
        writeln!(out, "messages      {}", Amount { messages: self.messages, bytes: self.bytes })?;
        for OfKind { kind, amount, latency: Latency { messages, p50_ps, p99_ps, .. } } in &self.kinds {
            write!(out, "  {kind:<20}  {amount}")?;
            // Messages within nodes have no network latency.
            match messages {
                0 => writeln!(out)?,
                _ => writeln!(out, ", latency p50 {}, p99 {}", Quantile(*p50_ps), Quantile(*p99_ps))?,
            }
        }
        if self.collectives_offloaded > 0 {
            let all = Count(self.collectives, "collective");
            let offloaded = Grouped(self.collectives_offloaded);
            writeln!(out, "  {offloaded} of {all} carried out by the network, without messages")?;
        }
        if self.collectives_split_evenly > 0 {
            let split = Count(self.collectives_split_evenly, "collective");
            writeln!(out, "  {split} split evenly: the trace has only sums; a container has the counts")?;
        }
        if self.same_node.messages > 0 {
            writeln!(out, "  of which in a node    {}", self.same_node)?;
        }
        let Latency { messages, min_ps, mean_ps, p50_ps, p90_ps, p99_ps, p999_ps, max_ps } = self.latency;
        match messages {
            0 => writeln!(out, "latency       no messages on the network")?,
            _ => {
                let [min, mean, max] = [min_ps, mean_ps, max_ps].map(Picos);
                writeln!(out, "latency       min {min}, mean {mean}, max {max}")?;
                let [p50, p90, p99, p999] = [p50_ps, p90_ps, p99_ps, p999_ps].map(Quantile);
                writeln!(out, "              p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}")?;
            }
        }
        self.write_sizes(out)?;
        if loggp.is_none() {
            self.write_links(out)?;
        }
        if let Some(path) = &self.critical_path {
            self.write_path(out, path)?;
        }
        if let Some(waits) = &self.waits {
            self.write_waits(out, waits)?;
        }
        let Performance { wall_ps, events, events_per_s, .. } = self.performance;
        write!(out, "simulated in  {:.3} s, {}", Picos(wall_ps).seconds(), Count(events, "event"))?;
        match events_per_s {
            Some(rate) => writeln!(out, ", {:.2} million per second", rate * 1e-6),
            None => writeln!(out),
        }
    }

    /// Latency by size, if there is more than one size class.
    fn write_sizes(&self, out: &mut String) -> fmt::Result {
        if self.sizes.len() < 2 {
            return Ok(());
        }
        for OfSize { from_bytes, to_bytes, latency } in &self.sizes {
            let size = match from_bytes == to_bytes {
                true => format!("{} B", Grouped(from_bytes)),
                false => format!("{} to {} B", Grouped(from_bytes), Grouped(to_bytes)),
            };
            let [p50, p90, p99] = [latency.p50_ps, latency.p90_ps, latency.p99_ps].map(Quantile);
            writeln!(out, "  {size:<24} {:>12}: p50 {p50}, p90 {p90}, p99 {p99}", Grouped(latency.messages))?;
        }
        Ok(())
    }

    /// Use of the links, and the busiest.
    fn write_links(&self, out: &mut String) -> fmt::Result {
        let links = self.network.links;
        let LinksReport { used, utilisation_max, utilisation_mean, busiest, .. } = &self.links;
        let (max, mean) = (100.0 * utilisation_max, 100.0 * utilisation_mean);
        writeln!(out, "links         {used} of {links} used; busy at most {max:.2} %, mean {mean:.2} %")?;
        let named = &busiest[..busiest.len().min(NAMED)];
        let width = table::width(named.iter().map(|link| link.link.len()));
        for LinkReport { link, utilisation, amount, longest_queue_bytes, .. } in named {
            write!(out, "  {link:<width$}  {:6.2} %  {amount}", 100.0 * utilisation)?;
            match longest_queue_bytes {
                0 => writeln!(out)?,
                _ => writeln!(out, ", largest queue {}", Bytes(*longest_queue_bytes))?,
            }
        }
        Ok(())
    }

    /// Who waits for whom: where most, and who longest.
    fn write_waits(&self, out: &mut String, waits: &WaitsReport) -> fmt::Result {
        let all =
            self.jobs.iter().flat_map(|job| &job.times.0).fold(0u64, |sum, time| sum.saturating_add(*time));
        let waiting = waits.places.iter().fold(0u64, |sum, place| sum.saturating_add(place.time_ps));
        writeln!(out, "waits         {} of the tasks' time", percent(waiting, all))?;
        for WaitingIn { cause, function, phase, waits, time_ps } in waits.places.iter().take(NAMED) {
            write!(out, "  {}  {}", percent(*time_ps, all), cause.name())?;
            function.iter().try_for_each(|function| write!(out, " in {}", Printable(function)))?;
            phase.iter().try_for_each(|phase| write!(out, ", phase {}", Printable(phase)))?;
            writeln!(out, ": {}, {}", Count(*waits, "wait"), Picos(*time_ps))?;
        }
        for WaitingFor { job, task, on_task, cause, waits, time_ps } in waits.pairs.iter().take(NAMED) {
            let (waits, time) = (Count(*waits, "wait"), Picos(*time_ps));
            let [task, on_task] = [task, on_task].map(|&task| self.task(*job, task));
            writeln!(out, "  {}{task} for {on_task}: {time}, {waits}, {}", of_job(*job), cause.name())?;
        }
        Ok(())
    }

    /// The name of a task: those behind the ranks of the program are none.
    fn task(&self, job: u32, task: u32) -> String {
        let ranks = self.jobs.get(job as usize).and_then(|job| job.captured_tasks);
        match ranks.is_some_and(|ranks| task >= ranks) {
            true => format!("task {task} (a storage server or network interface)"),
            false => format!("rank {task}"),
        }
    }

    /// The critical path.
    fn write_path(&self, out: &mut String, path: &CriticalPath) -> fmt::Result {
        let share = |time| percent(time, self.runtime_ps);
        let parts: Vec<String> = path
            .parts()
            .iter()
            .filter(|(_, time)| *time > 0)
            .map(|(name, time)| format!("{name} {}", share(*time)))
            .collect();
        writeln!(out, "critical path {}: {}", Count(path.messages, "message"), parts.join(", "))?;
        for level in &path.levels {
            let CriticalLevel { level: name, links, transmission_ps, queueing_ps, .. } = level;
            let (sent, queued) = (share(*transmission_ps), share(*queueing_ps));
            write!(out, "  {name} ({})  transmission {sent}, queueing {queued}", Count(*links, "link"))?;
            match level.runtime_if_twice_as_fast_ps {
                Some(then) => {
                    let change = then as f64 / self.runtime_ps.max(1) as f64 - 1.0;
                    let then = Picos(then);
                    writeln!(
                        out,
                        "; with twice their bandwidth the run takes {then} ({})",
                        shown::signed_percent(change)
                    )?;
                }
                None => writeln!(out)?,
            }
        }
        let named = &path.links[..path.links.len().min(NAMED)];
        let width = table::width(named.iter().map(|link| link.link.len()));
        for link in named {
            let (sent, queued) = (share(link.transmission_ps), share(link.queueing_ps));
            writeln!(out, "  {:<width$}  transmission {sent}, queueing {queued}", link.link)?;
        }
        for CriticalRank { job, task, computing_ps } in path.ranks.iter().take(NAMED) {
            writeln!(out, "  {}rank {task} computes {}", of_job(*job), share(*computing_ps))?;
        }
        let mut longest: Vec<&CriticalStep> = path.steps.iter().collect();
        longest.sort_by_key(|step| std::cmp::Reverse(step.length_ps()));
        longest.truncate(NAMED);
        longest.sort_by_key(|step| step.span_ps().0);
        for step in longest {
            write!(out, "  at {} for {}: ", Picos(step.span_ps().0), Picos(step.length_ps()))?;
            match step {
                CriticalStep::Computing { job, task, record: Some(record), captured, .. } => {
                    let of = Of { what: None, record: *record, captured };
                    writeln!(out, "{}rank {task} computes before {of}", of_job(*job))?;
                }
                CriticalStep::Computing { job, task, record: None, .. } => {
                    writeln!(out, "{}rank {task} computes to the end", of_job(*job))?;
                }
                CriticalStep::Message {
                    job,
                    task,
                    to_task,
                    bytes,
                    kind,
                    queueing_ps,
                    record,
                    captured,
                    ..
                } => {
                    let of = Of { what: Some(kind), record: *record, captured };
                    let [task, to_task] = [task, to_task].map(|&task| self.task(*job, task));
                    write!(out, "{}{} from {task}, {of}, to {to_task}", of_job(*job), Bytes(*bytes))?;
                    match queueing_ps {
                        0 => writeln!(out)?,
                        _ => writeln!(out, ", of which queueing {}", Picos(*queueing_ps))?,
                    }
                }
            }
        }
        Ok(())
    }
}

impl JobReport {
    fn write_text(&self, out: &mut String) -> fmt::Result {
        let Finish { min_ps, mean_ps, max_ps, .. } = self.finish;
        let [min, mean, max] = [min_ps, mean_ps, max_ps].map(Picos);
        write!(out, "tasks         {}", self.tasks)?;
        if let Some(of_program) = self.captured_tasks {
            write!(out, ", of which {of_program} ran the program")?;
        }
        writeln!(out, "; finished from {min} to {max}, mean {mean}")?;
        if self.alone.is_some() || self.runs.is_some() || self.start_ps > 0 {
            write!(out, "  run time {}", Picos(self.runtime_ps))?;
            if self.start_ps > 0 {
                write!(out, " from {}", Picos(self.start_ps))?;
            }
            if let Some(Ideal { runtime_ps, slowdown }) = self.alone {
                write!(out, "; alone {}: slowdown {slowdown:.3}", Picos(runtime_ps))?;
            }
            match self.runs {
                Some(RunsReport { runs, min_ps, mean_ps, max_ps }) if runs > 1 => {
                    let [min, mean, max] = [min_ps, mean_ps, max_ps].map(Picos);
                    writeln!(out, "; {} from {min} to {max}, mean {mean}", Count(runs, "run"))?;
                }
                _ => writeln!(out)?,
            }
        }
        if let Some(part) = &self.part {
            let PartReport { description, records, of_records, .. } = part;
            let share = percent(*records, *of_records);
            write!(
                out,
                "  only {description}: {} of {} ({share})",
                Grouped(records),
                Count(*of_records, "record")
            )?;
            if let Some(iterations) = part.iterations.filter(|&iterations| iterations > 0) {
                let each = Picos(self.runtime_ps / iterations);
                write!(out, "; {each} for each of {}", Grouped(iterations))?;
            }
            match (part.receptions_left_out, part.collective_parts_left_out) {
                (0, 0) => writeln!(out)?,
                (receptions, parts) => writeln!(
                    out,
                    "; not waited for, as outside of it: {}, {} of collectives",
                    Count(receptions, "message"),
                    Count(parts, "part")
                )?,
            }
        }
        if let Some(JobSpan { initialisation_ps, from_init, captured_ps, simulated_ps }) = self.span {
            let end = if captured_ps.is_some() { "MPI_Finalize" } else { "record" };
            write!(out, "  from the last MPI_Init to the last {end} {}", Picos(simulated_ps))?;
            if let Some(captured) = captured_ps {
                let share = percent(simulated_ps, captured);
                write!(out, ", {share} of the captured {} (longest rank)", Picos(captured))?;
            }
            let left_out = if from_init { "left out" } else { "as captured" };
            writeln!(out, "; MPI_Init ({left_out}) {}", Picos(initialisation_ps))?;
        }
        if !self.ranks.is_empty() {
            writeln!(out, "  {}", states(&self.times))?;
            self.write_apart(out)?;
        }
        self.computing.write_text(out)?;
        self.not_in_trace.iter().try_for_each(|what| writeln!(out, "  not in the trace: {what}"))
    }

    /// How far the times are from those captured, most first, without those that are 0 in both.
    fn write_apart(&self, out: &mut String) -> fmt::Result {
        let Some(captured) = &self.captured_times else { return Ok(()) };
        let pairs = self.times.iter().map(|(state, &time)| (state, time, captured[state]));
        let mut pairs: Vec<_> = pairs.filter(|(_, time, captured)| time.max(captured) > &0).collect();
        pairs.sort_by_key(|&(_, time, captured)| Reverse(time.abs_diff(captured)));
        let pairs = pairs.into_iter().map(|(state, time, captured)| {
            format!("{} {} (captured {})", state.title(), Picos(time), Picos(captured))
        });
        let pairs: Vec<String> = pairs.collect();
        let own = self.captured_own_ps.filter(|&own| own > 0).map_or(String::new(), |own| {
            format!(", MPI's own work in calls that have records {} (captured {})", Picos(0), Picos(own))
        });
        let whose = if self.captured_tasks.is_some() { "tasks of the program" } else { "all tasks" };
        writeln!(out, "  {whose} together, furthest from the capture first: {}{own}", pairs.join(", "))
    }
}

impl ComputingReport {
    fn write_text(&self, out: &mut String) -> fmt::Result {
        if let Some(scale) = &self.scale {
            writeln!(out, "  computing times of the trace × {scale}")?;
        }
        let Some(NoiseReport { model, places, divided, replaced, kept, deviations }) = &self.noise else {
            return Ok(());
        };
        writeln!(
            out,
            "  noise {model}: {} at {} ({} with several kinds of work), {} kept; time over the typical time:",
            Count(*replaced, "computing time"),
            Count(*places, "place"),
            Grouped(*divided),
            Grouped(*kept)
        )?;
        if model.starts_with("resampled") {
            writeln!(
                out,
                "    each time is drawn on its own: ranks that wait for each other wait longer than in the capture, whose delays come together"
            )?;
        }
        for &Deviations { from_ps, records, mean, p10, p50, p90, p99, max } in deviations {
            writeln!(
                out,
                "    from {:<8} {:>12}: mean {mean:.3}, p10 {p10:.3}, p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, max {max:.3}",
                Picos(from_ps),
                Grouped(records)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", Grouped(self.messages), Bytes(self.bytes))
    }
}

/// The times of tasks as shares of their sum, without those that are 0.
fn states(times: &ByState<u64>) -> String {
    let total = times.0.iter().fold(0u64, |sum, time| sum.saturating_add(*time));
    let shown = times.iter().filter(|(state, time)| **time > 0 || *state == State::Computing);
    let shares: Vec<String> =
        shown.map(|(state, time)| format!("{} {}", state.title(), percent(*time, total))).collect();
    shares.join(", ")
}

fn percent(time: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * time as f64 / of.max(1) as f64)
}

/// A record of the critical path by function, phase and captured time, as far as they are known.
struct Of<'a> {
    what: Option<&'a Kind>,
    record: u64,
    captured: &'a Captured,
}

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Captured { function, phase, captured_ps } = self.captured;
        match function {
            Some(function) => write!(f, "{} (record {}", Printable(function), self.record)?,
            None => write!(f, "record {}", self.record)?,
        }
        let phase = phase.as_ref().map(|phase| format!("phase {}", Printable(phase)));
        let at = captured_ps.map(|at| format!("captured at {}", Picos(at)));
        let kind = self.what.map(Kind::to_string);
        let rest: Vec<String> = [kind, phase, at].into_iter().flatten().collect();
        match (function, rest.is_empty()) {
            (Some(_), true) => f.write_str(")"),
            (Some(_), false) => write!(f, ", {})", rest.join(", ")),
            (None, true) => Ok(()),
            (None, false) => write!(f, " ({})", rest.join(", ")),
        }
    }
}

/// `job 2, `; empty for job 0.
fn of_job(job: u32) -> String {
    if job > 0 { format!("job {job}, ") } else { String::new() }
}

/// A quantile of latencies, which is up to 1/128 too great: in three digits.
struct Quantile(u64);

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10u64.pow(self.0.checked_ilog10().unwrap_or(0).saturating_sub(2));
        let shown = Picos(self.0.saturating_add(unit / 2) / unit * unit).to_string();
        match shown.rsplit_once(' ') {
            Some((number, unit)) if number.contains('.') => {
                write!(f, "{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => f.write_str(&shown),
        }
    }
}

/// A value, or the least and the largest one.
fn range([least, most]: [u64; 2], shown: impl Fn(u64) -> String) -> String {
    if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) }
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
            assert_eq!(Quantile(exact).to_string(), shown);
        }
    }
}
