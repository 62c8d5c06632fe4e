//! The page of a report: one HTML file that needs no network. Tables are in it as such; figures are drawn by the scripts that it
//! carries from the data that it carries.

use super::model::Report;
use super::parts::{explorable_figure, figure, first_of, mean_of, share};
use super::sections::{
    after_table, collective_times_table, common_sizes_table, functions_table, kinds_table, locality_table,
    quantiles_table, time_table,
};
use super::shown::{rate, spans};
use super::{against, simulation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, GzBuilder};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use results::Exact;
use results::shown::{bytes, count, percent, time};
use results::table::Table;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use vef_format::state::State;
use vef_format::units::{Count, Grouped};

/// Observable Plot, made by `scripts/vendor-charts`.
pub(super) const PLOT: &str = include_str!("../../assets/plot.bundle.js");
/// The figures.
pub(super) const FIGURES: &str = include_str!("../../assets/figures.js");
const PAGE: &str = include_str!("../../assets/page.js");
const STYLE: &str = include_str!("../../assets/style.css");
const LICENCES: &str = include_str!("../../assets/THIRD-PARTY.txt");

impl Report {
    /// The page.
    ///
    /// # Errors
    /// None is known: memory is written to.
    pub fn to_page(&self) -> io::Result<String> {
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        packed.write_all(self.to_json().as_bytes())?;
        let data = BASE64.encode(packed.finish()?);
        let scripts = [PLOT, FIGURES, PAGE];
        let hashes: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
        let policy = format!(
            "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:",
            hashes.join(" ")
        );
        let title = self.data.head.command.as_deref().unwrap_or(&self.data.head.file);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " – vef report" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.contents(title))
                    script type="application/octet-stream" id="data" { (PreEscaped(data)) }
                    @for script in scripts { script { (PreEscaped(script)) } }
                }
            }
        };
        Ok(page.into_string())
    }

    fn contents(&self, title: &str) -> Markup {
        let sections: Vec<(&str, &str, Markup)> = [
            ("summary", "Summary", Some(self.summary())),
            ("spent", "Time as captured", self.spent_section()),
            ("files", "Files", self.files_section()),
            ("time", "Over time", self.over_time()),
            ("waits", "Who waits for whom", self.waits_section()),
            ("pairs", "Who to whom", Some(self.who_to_whom())),
            ("destinations", "Destinations and locality", Some(self.destinations())),
            ("sizes", "Sizes", Some(self.sizes_section())),
            ("collectives", "Collectives", Some(self.collective_operations())),
            ("ranks", "Ranks", Some(self.ranks_section())),
            ("requests", "Messages under way", self.under_way()),
            ("phases", "Phases", self.phases_section()),
            ("missing", "Not in the trace", Some(self.not_in_trace())),
            ("simulation", "Simulation", self.data.simulated.as_ref().map(simulation::section)),
            ("sweep", "Sweep", self.data.sweep.as_ref().map(simulation::sweep_section)),
            ("against", "Comparison", self.data.against.as_ref().map(against::section)),
            ("how", "How each number was made", Some(self.how())),
        ]
        .into_iter()
        .filter_map(|(id, name, section)| Some((id, name, section?)))
        .collect();
        html! {
            nav {
                @for (id, name, _) in &sections { a href={ "#" (id) } { (name) } }
                button id="theme" type="button" { "light / dark" }
            }
            h1 { (title) }
            (self.about())
            p #failed .warnings hidden {
                "The figures need a browser of 2024 or later (Chromium 123, Firefox 120, Safari 17.5). All tables are complete without them."
            }
            noscript { p .warnings { "The figures need scripts. All tables are complete without them." } }
            main {
                @for (id, name, section) in &sections {
                    section id=(id) { h2 { (name) } (section) }
                }
            }
        }
    }

    fn about(&self) -> Markup {
        let head = &self.data.head;
        let hosts: Vec<String> = head
            .hosts
            .iter()
            .take(8)
            .map(|host| format!("{} ({})", host.name, Count(host.ranks, head.task())))
            .collect();
        let more = head.hosts.len().saturating_sub(8);
        html! {
            dl .facts {
                dt { "file" } dd { (head.file) ", " (head.kind) ", " (bytes(head.file_bytes)) }
                dt { (head.task()) "s" } dd {
                    (Grouped(head.ranks))
                    @if !hosts.is_empty() { " on " (hosts.join(", ")) @if more > 0 { " and " (Count(more, "more host")) } }
                }
                @if !head.serving.is_empty() { dt { "serving" } dd { (head.serving.join("; ")) } }
                @if !head.spawned.is_empty() { dt { "spawned" } dd { (head.spawned.join("; ")) } }
                @if let Some(part) = &head.part { dt { "part" } dd { strong { "only " (part) } } }
                @if let Some(captured) = &head.captured { dt { "run" } dd { (spans(captured)) } }
                @for (name, value) in [("program", &head.program), ("MPI", &head.mpi), ("captured", &head.date)] {
                    @if let Some(value) = value { dt { (name) } dd { (value) } }
                }
                dt { "clock" } dd {
                    @match &self.data.replayed {
                        Some(replayed) => {
                            "replayed: each message takes " (time(replayed.latency_ps)) " and its bytes over "
                            (rate(replayed.bandwidth_bits_per_s)) ", and none is in another's way"
                        }
                        None => "none: nothing was replayed, and no figure has a time axis"
                    }
                }
                dt { "made by" } dd { (head.tool) }
            }
            @if !head.warnings.is_empty() {
                div .warnings role="note" { strong { "Warnings" } ul { @for line in &head.warnings { li { (line) } } } }
            }
        }
    }

    fn summary(&self) -> Markup {
        let efficiency = self.data.replayed.as_ref().and_then(|replayed| replayed.efficiency);
        html! {
            (self.totals_table().to_tiles())
            @if let Some(efficiency) = efficiency {
                h3 { "Efficiency" }
                p .small { "Parallel efficiency = load balance × serialisation × transfer. From 80 % on is good." }
                div .tiles {
                    (share(efficiency.parallel, "parallel efficiency: mean computing time over run time"))
                    (share(efficiency.load_balance, "load balance: mean over greatest computing time of a rank"))
                    (share(efficiency.communication, "communication: serialisation × transfer"))
                    (share(efficiency.serialisation, "serialisation: greatest computing time over run time on an ideal network"))
                    (share(efficiency.transfer, "transfer: run time on an ideal network over run time"))
                }
                @if let Some(initialising) = self.initialising().filter(|share| *share >= 0.01) {
                    p .small { (percent(initialising)) " of the computing time is MPI_Init, which counts as computing in these numbers." }
                }
            }
            (after_table(&self.data.totals.after).to_html(None))
            @if !self.data.calls.is_empty() {
                h3 { "MPI functions behind the records" }
                (with_csv(&self.calls_table()))
            }
        }
    }

    /// The share of all computing that is `MPI_Init`.
    pub(super) fn initialising(&self) -> Option<f64> {
        let sum = |times: &[Exact]| times.iter().map(|time| time.0 as f64).sum::<f64>();
        let ranks = &self.data.replayed.as_ref()?.ranks;
        let all = sum(&ranks.times[State::Computing]);
        (all > 0.0).then(|| sum(&ranks.initialising_ps) / all)
    }

    fn spent_section(&self) -> Option<Markup> {
        let spent = self.data.spent.as_ref()?;
        let per_row = u64::from(spent.ranks_per_row);
        Some(html! {
            p {
                "The captured run, from the end of each rank's MPI_Init to its MPI_Finalize, is " (time(spent.run_ps)) " of all ranks. "
                "Start-up comes before it and belongs to no share. Nothing here is replayed."
            }
            (figure("spent", &format!("How each rank spent the captured run.{}", mean_of(per_row))))
            (time_table(spent).to_html(None))
            @if !spent.functions.is_empty() {
                h3 { "Time in MPI functions" }
                (figure("function-ranks", &format!("Time in the functions with most of it, by rank. The scale of colours is logarithmic.{}", mean_of(per_row))))
                (with_csv(&functions_table(spent)))
            }
        })
    }

    fn files_section(&self) -> Option<Markup> {
        let [files, ranks] = self.data.files.as_ref()?.tables();
        let all = |table: &Table| {
            table.to_html(Some(html! { "vef report --format csv writes all to " (table.name) ".csv" }))
        };
        Some(html! {
            p {
                "The captured run: what the program did with files by MPI. Bytes read are those asked for. Time is that of the calls, and of the waits "
                "for those that do not block; that of MPI_File_…_end is not in it."
            }
            (all(&files))
            h3 { "By rank" }
            (all(&ranks))
        })
    }

    fn over_time(&self) -> Option<Markup> {
        let replayed = self.data.replayed.as_ref()?;
        Some(html! {
            div #zoom .no-print hidden {}
            (figure("over-time", "Traffic by the moment at which messages start, in the replay, by what they belong to; the messages of collectives by their default algorithms."))
            (figure("states", "What ranks do, in the replay: how many of them compute, are in a collective, wait for a message or for a send to complete, or have finished."))
            (figure("rank-time", &format!("Bytes that each rank sends over time, in the replay; empty where nothing is sent. The scale of colours is logarithmic.{}", mean_of(replayed.rank_time.ranks_per_row.into()))))
            @if replayed.kinds.is_empty() {
                p { "No message is on the network in the replay." }
            } @else {
                h3 { "Messages on the network" }
                (kinds_table(replayed).to_html(None))
            }
        })
    }

    fn waits_section(&self) -> Option<Markup> {
        let (places, pairs) = (self.waits_table()?, self.wait_pairs_table()?);
        (!places.is_empty()).then(|| html! {
            p {
                "In the replay. A message or a collective is late until its sender, or the last member, has come to it; from then on it is under way. "
                "vef sim --waits has the same for a network of your choice."
                @if let Some(time) = self.in_sends() {
                    " No rank waits for a send here: each is complete at once. In the captured run, all ranks together were " (time) " in sends and in waits for these; "
                    "vef sim --waits --send-completion rendezvous-in-calls:64KiB has the waits for late receivers."
                }
            }
            (with_csv(&places))
            @if !pairs.is_empty() {
                h3 { "By pair of ranks" }
                (with_csv(&pairs))
            }
        })
    }

    fn who_to_whom(&self) -> Markup {
        let pairs = &self.data.pairs;
        let mean = mean_of(self.data.ranks.ranks_per_row.into());
        let added = match pairs.matrix.ranks_per_row {
            0..2 => String::new(),
            ranks => format!(
                "A row or column is the sum of {} neighbouring ranks; the last one may have fewer. ",
                Grouped(ranks)
            ),
        };
        html! {
            p {
                @match pairs.different {
                    Some(different) => { "Ordered pairs of ranks that exchange messages: " (Grouped(different)) "." }
                    None => "More pairs of ranks exchange messages than were counted one by one; the matrix is exact.",
                }
                @if let Some(symmetry) = pairs.symmetry {
                    " Share of the bytes with as many the other way: " (percent(symmetry)) "."
                }
            }
            (explorable_figure("matrix", &(added + "Who sends to whom: sending ranks from top to bottom, receiving ranks from left to right; empty without messages. The scale of colours is logarithmic. \
                Point-to-point lines of the trace, or the messages that collectives become by their default algorithms."), "The pointer or the arrow keys show a value."))
            (figure("sent", &format!("What each rank sends, by the point-to-point lines of the trace.{mean}")))
            (figure("received", &format!("What each rank receives, likewise.{mean}")))
            (figure("partners", "How many ranks have so many different receivers."))
            @if !pairs.top.is_empty() {
                h3 { "Pairs with most bytes" }
                (with_csv(&self.pairs_table()))
            }
        }
    }

    fn destinations(&self) -> Markup {
        html! {
            @if let Some(entropy) = &self.data.pairs.entropy {
                p {
                    "Destinations of a rank's messages have " (bits(entropy.mean)) " of entropy on average, from " (bits(entropy.min.bits)) " to " (bits(entropy.max.bits))
                    " (rank " (entropy.max.rank) "): as even as over " (format!("{:.1}", entropy.mean.exp2())) " receivers. A single receiver is 0 bits."
                }
            }
            (figure("distances", "How far the numbers of sender and receiver are apart, in powers of two. Ranks of near numbers are mostly placed near each other."))
            @if let Some(locality) = &self.data.locality {
                (locality_table(locality).to_html(None))
            } @else { p .small { "The trace does not tell on which hosts its ranks ran." } }
        }
    }

    fn sizes_section(&self) -> Markup {
        let sizes = &self.data.sizes;
        if self.data.totals.messages.0 == 0 {
            return html! { p { "The trace has no messages." } };
        }
        html! {
            (figure("sizes", "Above, messages by powers of two of their size; below, the share of all bytes in messages smaller than that size."))
            (quantiles_table(sizes).to_html(None))
            @if !sizes.common.is_empty() {
                h3 { "Most frequent sizes" }
                (with_csv(&common_sizes_table(sizes)))
            } @else if sizes.different.is_none() {
                p .small { "There are too many different sizes to list them; quantiles are at most 1/128 too large." }
            }
        }
    }

    fn collective_operations(&self) -> Markup {
        let collectives = &self.data.collectives;
        if collectives.operations.is_empty() {
            return html! { p { "The trace has no collective operations." } };
        }
        html! {
            (figure("collectives", &format!("Bytes that the members contribute to collective operations, or obtain, whichever is more; all members together. A root\u{2019}s block for itself is left out, a member\u{2019}s block for itself in Allgather and Alltoall is not.{}", first_of(20, collectives.operations.len(), "with most bytes"))))
            (with_csv(&self.collectives_table()))
            @if let Some(replayed) = &self.data.replayed {
                h3 { "Time in collectives" }
                p .small {
                    "In the replay: from when a member enters an operation until its part is complete, all members together, and that as a share of all ranks' run time; "
                    "how long after the first member the last one enters. The messages are those of the default algorithms."
                }
                (collective_times_table(&replayed.collectives).to_html(None))
            }
            h3 { "Communicators with most operations" }
            (with_csv(&self.communicators_table()))
        }
    }

    fn ranks_section(&self) -> Markup {
        let caption = match &self.data.replayed {
            Some(_) => "What each rank does from the start to the end of the replay.",
            None => "How long each rank computes.",
        };
        let per_row = self
            .data
            .replayed
            .as_ref()
            .map_or(self.data.ranks.ranks_per_row, |replayed| replayed.ranks.ranks_per_row);
        html! {
            (figure("ranks", &format!("{caption}{}", mean_of(per_row.into()))))
            (self.ranks_table().to_html(None))
            p .small { "Variation: the standard deviation over ranks, over their mean." }
        }
    }

    fn under_way(&self) -> Option<Markup> {
        let flight = &self.data.replayed.as_ref()?.in_flight;
        let (most, all) = (&flight.of_sender_max, flight.max.iter().max());
        Some(html! {
            (figure("in-flight", "Messages under way at a time, in the replay: started and not arrived, of point-to-point lines and of collectives; the mean over each step, and the most at a time in it."))
            (figure("of-sender", "How many point-to-point messages of a rank are under way when one more starts, itself included, by powers of two."))
            @match all.filter(|all| all.0 > 0) {
                Some(all) => p { "Most messages under way at a time: " (count(*all)) "." },
                None => p { "No message is under way in the replay." },
            }
            @if most.value.0 > 0 { p { "Most point-to-point messages of one rank: " (count(most.value)) " (rank " (most.rank) ")." } }
        })
    }

    fn phases_section(&self) -> Option<Markup> {
        (!self.data.phases.is_empty()).then(|| html! {
            (figure("phases", &format!("The program's phases, all ranks together; a record, and computing, counts for the innermost phase that it is in.{}", first_of(20, self.data.phases.len(), "with most computing"))))
            (figure("phase-sizes", "Messages of each phase by powers of two of their size; the eight phases with most messages, each on a scale of its own."))
            (with_csv(&self.phases_table()))
        })
    }

    fn not_in_trace(&self) -> Markup {
        let lines = &self.data.head.not_in_trace;
        html! {
            @match (lines.is_empty(), self.data.head.kind.as_str()) {
                (true, "text") => p { "A trace in text does not say what the program did that a trace cannot hold." },
                (true, _) => p { "Nothing: all that the program did by MPI is in the trace." },
                (false, _) => ul { @for line in lines { li { (line) } } },
            }
        }
    }

    fn how(&self) -> Markup {
        html! {
            ul {
                li { "Messages are those " em { "in the trace" } ": its point-to-point lines, counted in one pass. Collectives are counted as such. Messages " em { "on the network" } " include those that collectives become." }
                li { "Collective operations: parts over members of the communicator, rounded up." }
                li { "Computing times are the trace's, between the MPI calls of a rank." }
                @if let Some(replayed) = &self.data.replayed {
                    li {
                        "Times over time, of ranks, and the efficiency come from a replay on a network where each message takes " (time(replayed.latency_ps))
                        " and its bytes over " (rate(replayed.bandwidth_bits_per_s)) ", and none is in another's way. Sends complete at once."
                    }
                    li { "The ideal network has no latency and unlimited bandwidth: the replay on it took " (time(replayed.ideal_runtime_ps)) "." }
                    li { "Time is divided into steps of " (time(replayed.over_time.bin_ps)) "; in the figure of the bytes that each rank sends, of " (time(replayed.rank_time.bin_ps)) "." }
                }
                li { "Sizes in powers of two: a class holds the sizes from its name up to below the next one." }
                li { "kB, MB, GB, TB, PB and EB are powers of 1000; KiB, MiB, GiB, TiB, PiB and EiB powers of 1024." }
            }
            p .small { "The data of this page is the file of " code { "vef report --format json" } "; docs/reports.md lists its keys." }
            details .no-print { summary { "Licences of the parts that draw the figures" } pre { (LICENCES) } }
        }
    }
}

fn bits(bits: f64) -> String {
    format!("{bits:.2} bits")
}

/// A table of which the CSV of the report has all rows.
fn with_csv(table: &Table) -> Markup {
    table.to_html(Some(html! { code { "vef report --format csv" } " writes all to " (table.name) ".csv" }))
}

/// The word of a content security policy that allows a script.
fn hash(script: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(script)))
}
