//! The data of a report as Markdown, to be put into notes and reviews.

use super::model::Report;
use super::sections::Section;
use super::shown::rate;
use super::{against, simulation};
use results::report::Replayed;
use results::table::{Cell, Table, TextStyle};
use vef_format::units::Printable;

impl Report {
    /// Headings, and below each a table as plain text, of `top` rows at most.
    pub fn to_markdown(&self, top: usize) -> String {
        let style = TextStyle { top, bars: false, more: "--format csv", indent: "  " };
        let title = self.data.head.command.as_deref().unwrap_or(&self.data.head.file);
        let mut out =
            format!("# `{}`\n\n{}", title.replace(['`', '\n'], " ").trim(), block(&self.head_text()));
        let mut add = |title: &str, text: &str| out += &format!("\n## {title}\n\n{}", block(text));
        for table in Section::ALL.into_iter().filter_map(|(section, _)| self.table(section)) {
            add(&table.title, &table.to_text(&style));
        }
        if let Some(replayed) = &self.data.replayed {
            add("Replay", &sums(replayed, self.initialising()).to_text(&style));
        }
        if let Some(simulated) = &self.data.simulated {
            let tables = [
                simulation::network(&simulated.result),
                simulation::sums(&simulated.result),
                simulation::busiest(&simulated.result),
            ];
            add("Simulation", &tables.map(|table| table.to_text(&style)).join("\n"));
        }
        if let Some(sweep) = &self.data.sweep {
            let answers: String = sweep.answers.iter().map(|answer| format!("  {answer}\n")).collect();
            add("Sweep", &(answers + &sweep.table().to_text(&style)));
        }
        if let Some(against) = &self.data.against {
            let head = &against.head;
            let other = format!("  compared with {}\n\n", head.command.as_deref().unwrap_or(&head.file));
            add("Comparison", &(other + &against::table(against).to_text(&style)));
        }
        Printable(&out).to_string()
    }
}

/// A block that nothing in it ends.
fn block(text: &str) -> String {
    format!("```text\n{}```\n", text.replace("```", "'''"))
}

/// What the replay shows.
fn sums(replayed: &Replayed, initialising: Option<f64>) -> Table {
    let bits = replayed.bandwidth_bits_per_s;
    let mut sums = Table::facts("replay", "Replay");
    sums.fact("latency of a message", Cell::Time(replayed.latency_ps.0));
    sums.fact("bandwidth", Cell::Worded(bits as f64, rate(bits)));
    sums.fact("run time", Cell::Time(replayed.runtime_ps.0));
    sums.fact("run time on an ideal network", Cell::Time(replayed.ideal_runtime_ps.0));
    if let Some(efficiency) = replayed.efficiency {
        sums.fact("parallel efficiency", Cell::Share(efficiency.parallel));
        sums.fact("load balance", Cell::Share(efficiency.load_balance));
        sums.fact("serialisation", Cell::Share(efficiency.serialisation));
        sums.fact("transfer", Cell::Share(efficiency.transfer));
    }
    if let Some(share) = initialising.filter(|share| *share > 0.0) {
        sums.fact("MPI_Init, as a share of computing", Cell::Share(share));
    }
    sums
}
