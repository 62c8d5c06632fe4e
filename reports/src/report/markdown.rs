//! The data of a report as Markdown, to be put into notes and reviews.

use super::model::Report;
use super::parts::{percent, rate};
use super::shown::{printable, time};
use super::text::{Rows, Section, Shown};
use super::{against, simulation};
use results::Exact;
use results::report::Replayed;
use results::table::TextStyle;

impl Report {
    /// Headings, and below each a table as plain text, of `top` rows at most.
    pub fn to_markdown(&self, top: usize) -> String {
        let shown = Shown { top, bars: false, more: "--format csv" };
        let title = self.data.head.command.as_deref().unwrap_or(&self.data.head.file);
        let mut out =
            format!("# `{}`\n\n{}", title.replace(['`', '\n'], " ").trim(), block(&self.head_text()));
        let mut add = |title: &str, text: &str| out += &format!("\n## {title}\n\n{}", block(text));
        for section in Section::ALL {
            let text = self.to_text(Some(section), &shown);
            if let Some((title, rows)) = text.trim_start().split_once('\n') {
                add(title, rows);
            }
        }
        let text = |rows: &Rows| {
            let mut text = String::new();
            rows.write(&shown, &mut text);
            text
        };
        if let Some(replayed) = &self.data.replayed {
            add("Replay", &text(&rows(replayed, self.initialising())));
        }
        if let Some(simulated) = &self.data.simulated {
            let tables = [
                simulation::network(&simulated.result),
                simulation::sums(&simulated.result),
                simulation::busiest(&simulated.result),
            ];
            let style = TextStyle { top, indent: "  ", ..TextStyle::WHOLE };
            add("Simulation", &tables.map(|table| table.to_text(&style)).join("\n"));
        }
        if let Some(against) = &self.data.against {
            let head = &against.head;
            let other = format!("  compared with {}\n\n", head.command.as_deref().unwrap_or(&head.file));
            add("Comparison", &(other + &text(&against::rows(against))));
        }
        printable(&out)
    }
}

/// A block that nothing in it ends.
fn block(text: &str) -> String {
    format!("```text\n{}```\n", text.replace("```", "'''"))
}

/// What the replay shows.
fn rows(replayed: &Replayed, initialising: Option<f64>) -> Rows {
    let mut rows = Rows::new(&["", ""]);
    let mut row = |name: &str, value: String| rows.row(Exact(0), vec![name.to_owned(), value]);
    row("latency of a message", time(replayed.latency_ps));
    row("bandwidth", rate(replayed.bandwidth_bits_per_s));
    row("run time", time(replayed.runtime_ps));
    row("run time on an ideal network", time(replayed.ideal_runtime_ps));
    if let Some(efficiency) = replayed.efficiency {
        row("parallel efficiency", percent(efficiency.parallel));
        row("load balance", percent(efficiency.load_balance));
        row("serialisation", percent(efficiency.serialisation));
        row("transfer", percent(efficiency.transfer));
    }
    if let Some(share) = initialising.filter(|share| *share > 0.0) {
        row("MPI_Init, as a share of computing", percent(share));
    }
    rows
}
