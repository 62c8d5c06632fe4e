//! A report for people on a terminal: at most a hundred columns, numbers to the right, units in the heads.

use super::model::Report;
use super::sections::Section;
use super::shown::spans;
use results::shown::{bytes, count, time};
use results::table::TextStyle;
use vef_format::units::Count;

impl Report {
    /// The whole report, or `only` a part of it.
    pub fn to_text(&self, only: Option<Section>, style: &TextStyle) -> String {
        let mut out = String::new();
        match only {
            Some(section) => self.write_section(section, style, &mut out),
            None => {
                out.push_str(&self.head_text());
                for (section, _) in Section::ALL {
                    self.write_section(section, style, &mut out);
                }
            }
        }
        out
    }

    /// What the report is about, and its sums.
    pub(super) fn head_text(&self) -> String {
        let mut out = String::new();
        let (head, totals, sizes) = (&self.data.head, &self.data.totals, &self.data.sizes);
        out.push_str(&format!(
            "{}: {} of {}, {}\n",
            head.file,
            head.kind,
            Count(head.ranks, head.task()),
            bytes(head.file_bytes)
        ));
        if let Some(part) = &head.part {
            out.push_str(&format!("  only {part}\n"));
        }
        let about = [&head.command, &head.mpi, &head.date]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect::<Vec<_>>();
        if !about.is_empty() {
            out.push_str(&format!("  {}\n", about.join("; ")));
        }
        if !head.hosts.is_empty() {
            let hosts: Vec<String> = head
                .hosts
                .iter()
                .take(4)
                .map(|host| format!("{} ({})", host.name, Count(host.ranks, head.task())))
                .collect();
            let more = head.hosts.len().saturating_sub(4);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.push_str(&format!("  on {}{more}\n", hosts.join(", ")));
        }
        for serving in &head.serving {
            out.push_str(&format!("  {serving}\n"));
        }
        for spawned in &head.spawned {
            out.push_str(&format!("  spawned by the program: {spawned}\n"));
        }
        for warning in &head.warnings {
            out.push_str(&format!("  warning: {warning}\n"));
        }
        for line in &head.not_in_trace {
            out.push_str(&format!("  not in the trace: {line}\n"));
        }
        let mut fact = |name: &str, text: String| out.push_str(&format!("  {name:<14}{text}\n"));
        if let Some(captured) = head.captured {
            fact("captured", spans(&captured));
        }
        fact(
            "messages",
            format!(
                "{} with {}; {} awaited, {} of a rank to itself",
                count(totals.messages),
                bytes(totals.bytes),
                count(totals.awaited),
                count(totals.to_self)
            ),
        );
        fact(
            "sizes",
            match totals.messages.0 {
                0 => "none, as there are no messages".to_owned(),
                _ => format!(
                    "mean {}, median {}, p90 {}, p99 {}, from {} to {}",
                    bytes(sizes.mean),
                    bytes(sizes.p50),
                    bytes(sizes.p90),
                    bytes(sizes.p99),
                    bytes(sizes.min),
                    bytes(sizes.max)
                ),
            },
        );
        fact(
            "collectives",
            format!(
                "{} ({}) on {}",
                count(totals.collectives),
                Count(totals.collective_parts.0, "part"),
                Count(totals.communicators.0, "communicator")
            ),
        );
        let after = &totals.after;
        fact(
            "records",
            format!(
                "{}, of which marks {}; after a send {}, a reception {}, a collective {}",
                count(totals.records),
                count(totals.marks),
                count(after.send),
                count(after.reception),
                count(after.collective)
            ),
        );
        fact(
            "computing",
            format!("{} of all ranks, {} at most", time(totals.computing_ps), time(totals.computing_max_ps)),
        );
        if let Some(entropy) = &self.data.pairs.entropy {
            let (min, max) = (entropy.min, entropy.max);
            fact(
                "destinations",
                format!(
                    "entropy {:.2} bits on average, from {:.2} (rank {}) to {:.2} (rank {})",
                    entropy.mean, min.bits, min.rank, max.bits, max.rank
                ),
            );
        }
        if let Some(locality) = &self.data.locality {
            fact(
                "locality",
                format!(
                    "within a host {} with {}, between hosts {} with {}",
                    count(locality.same_host.messages),
                    bytes(locality.same_host.bytes),
                    count(locality.between_hosts.messages),
                    bytes(locality.between_hosts.bytes)
                ),
            );
        }
        out
    }

    fn write_section(&self, section: Section, style: &TextStyle, out: &mut String) {
        if let Some(table) = self.table(section) {
            out.push_str(&format!("\n{}\n{}", table.title, table.to_text(style)));
        }
    }
}
