//! The tables of a simulation.

use super::{CriticalPath, Latency, LinkReport, OverTime, Simulation, WaitsReport};
use crate::table::{Cell, Column, Table};
use vef_format::state::State;

const LATENCY: [Column; 8] = [
    Column::new("measured", "over the network").means("Messages that crossed the network"),
    Column::new("min_ps", "least"),
    Column::new("mean_ps", "mean"),
    Column::new("p50_ps", "median"),
    Column::new("p90_ps", "90 %"),
    Column::new("p99_ps", "99 %"),
    Column::new("p999_ps", "99.9 %"),
    Column::new("max_ps", "greatest"),
];

fn latency(latency: &Latency) -> impl Iterator<Item = Cell> + use<> {
    let Latency { messages, min_ps, mean_ps, p50_ps, p90_ps, p99_ps, p999_ps, max_ps } = *latency;
    let times = [min_ps, mean_ps, p50_ps, p90_ps, p99_ps, p999_ps, max_ps]
        .map(|time| Cell::maybe((messages > 0).then_some(time.into()), Cell::Time));
    [Cell::count(messages)].into_iter().chain(times)
}

impl Simulation {
    /// The jobs: when they ran, and how long alone.
    pub fn jobs_table(&self) -> Table {
        let columns = vec![
            Column::new("job", "job"),
            Column::new("trace", "trace"),
            Column::new("tasks", "tasks"),
            Column::new("nodes", "nodes"),
            Column::new("start_ps", "start"),
            Column::new("runtime_ps", "run time")
                .means("From its start to the end of its last task, in its first run"),
            Column::new("alone_ps", "alone").means("The same without other jobs and background traffic"),
            Column::new("slowdown", "slowdown").means("Run time over that alone"),
            Column::new("runs", "runs"),
            Column::new("runs_mean_ps", "mean of all runs"),
        ];
        let mut table = Table::new("jobs", "Jobs", columns);
        for (number, job) in (0..).zip(&self.jobs) {
            table.row([
                Cell::Id(number),
                Cell::text(job.trace.as_deref().unwrap_or_default()),
                Cell::count(job.tasks),
                Cell::count(job.nodes),
                Cell::Time(job.start_ps.into()),
                Cell::Time(job.runtime_ps.into()),
                Cell::maybe(job.alone, |alone| Cell::Time(alone.runtime_ps.into())),
                Cell::maybe(job.alone, |alone| Cell::Real(alone.slowdown, 4)),
                Cell::count(job.runs.map_or(1, |runs| runs.runs)),
                Cell::Time(job.runs.map_or(job.runtime_ps, |runs| runs.mean_ps).into()),
            ]);
        }
        table
    }

    /// The jobs of a list of arrivals.
    pub fn arrivals_table(&self) -> Table {
        let columns = vec![
            Column::new("job", "job").means("Its number in the list"),
            Column::new("trace", "trace"),
            Column::new("nodes", "nodes"),
            Column::new("submit_ps", "submitted"),
            Column::new("wait_ps", "wait").means("From its submission to its start"),
            Column::new("runtime_ps", "run time").means("From its start to the end of its last task"),
            Column::new("slowdown", "slowdown").means("Wait and run time over the run time"),
        ];
        let mut table = Table::new("arrivals", "Arrivals", columns);
        for (arrivals, job) in self.arrivals.iter().flat_map(|all| all.jobs.iter().map(move |job| (all, job)))
        {
            table.row([
                Cell::Id(job.job),
                Cell::text(arrivals.traces.get(job.trace as usize).map_or("", String::as_str)),
                Cell::count(job.nodes),
                Cell::Time(job.submit_ps.into()),
                Cell::Time(job.wait_ps.into()),
                Cell::Time(job.runtime_ps.into()),
                Cell::maybe(job.slowdown(), |slowdown| Cell::Real(slowdown, 4)),
            ]);
        }
        table
    }

    /// Times of each rank by state.
    pub fn ranks_table(&self) -> Table {
        let ids = ["job", "rank"].map(|name| Column::new(name, name));
        let finish = Column::new("finish_ps", "finished");
        let states = State::ALL.map(|state| Column {
            name: format!("{}_ps", state.name()).into(),
            ..Column::new("", state.title())
        });
        let columns = [&ids[..], &[finish], &states].concat();
        let mut table = Table::new("ranks", "Ranks", columns);
        for (number, job) in (0..).zip(&self.jobs) {
            for ((rank, &finish), times) in (0..).zip(&job.finish.tasks_ps).zip(&job.ranks) {
                let times = [finish].into_iter().chain(times.0).map(|time| Cell::Time(time.into()));
                table.row([Cell::Id(number), Cell::Id(rank)].into_iter().chain(times));
            }
        }
        table
    }

    /// Waits by cause, function and phase; without rows if they were not recorded.
    pub fn waits_table(&self) -> Table {
        self.waits.as_ref().unwrap_or(&WaitsReport::default()).places_table()
    }

    /// Waits by pair of tasks; without rows if they were not recorded.
    pub fn wait_pairs_table(&self) -> Table {
        self.waits.as_ref().unwrap_or(&WaitsReport::default()).pairs_table()
    }

    /// Messages and latency by kind.
    pub fn kinds_table(&self) -> Table {
        let own = ["kind", "messages", "bytes"].map(|name| Column::new(name, name));
        let mut table = Table::new("kinds", "Messages by kind", [&own[..], &LATENCY].concat());
        for of in &self.kinds {
            let own = [
                Cell::text(of.kind.to_string()),
                Cell::count(of.amount.messages),
                Cell::count(of.amount.bytes),
            ];
            table.row(own.into_iter().chain(latency(&of.latency)));
        }
        table
    }

    /// Latency of all messages together, then by kind.
    pub fn latency_table(&self) -> Table {
        let kind = Column::new("kind", "kind");
        let mut table = Table::new("latency", "Latency of messages", [&[kind][..], &LATENCY].concat());
        table.row([Cell::text("all messages")].into_iter().chain(latency(&self.latency)));
        for of in &self.kinds {
            table.row([Cell::text(of.kind.to_string())].into_iter().chain(latency(&of.latency)));
        }
        table
    }

    /// Latency by size.
    pub fn sizes_table(&self) -> Table {
        let own = [Column::new("from_bytes", "from, bytes"), Column::new("to_bytes", "to, bytes")];
        let mut table = Table::new("sizes", "Latency by size", [&own[..], &LATENCY].concat());
        for of in &self.sizes {
            let own = [of.from_bytes, of.to_bytes].map(Cell::count);
            table.row(own.into_iter().chain(latency(&of.latency)));
        }
        table
    }

    /// All links that carried messages, if these are recorded.
    pub fn links_table(&self) -> Table {
        links("links", "Links", self.links.all.iter().flatten(), |_| true)
    }

    /// The busiest links. How long messages waited for a link is not known of the links that lead from nodes, and in model flow of none.
    pub fn busiest_table(&self) -> Table {
        let is_flow = self.network.model == "flow";
        links("busiest", "Busiest links", &self.links.busiest, |link| {
            !is_flow && !link.link.starts_with("node")
        })
    }

    /// Use of the links over time.
    pub fn time_table(&self) -> Table {
        let columns = ["link", "from_ps", "to_ps", "bytes", "busy", "blocked"];
        let mut table = Table::new("time", "Links over time", columns.map(|name| Column::new(name, name)));
        let width = self.links.bin_ps.unwrap_or_default();
        for (link, OverTime { busy, blocked, bytes_over_time, .. }) in self.links_over_time() {
            for (bin, ((&busy, &blocked), &bytes)) in (0..).zip(busy.iter().zip(blocked).zip(bytes_over_time))
            {
                let times = [bin * width, ((bin + 1) * width).min(self.runtime_ps)];
                let [from, to] = times.map(|time| Cell::Time(time.into()));
                let shares = [Cell::count(bytes), Cell::Share(busy), Cell::Share(blocked)];
                table.row([Cell::text(&link.link), from, to].into_iter().chain(shares));
            }
        }
        table
    }

    /// Bytes of tasks on each link.
    pub fn sources_table(&self) -> Table {
        let columns = ["link", "job", "rank", "bytes"].map(|name| Column::new(name, name));
        let mut table = Table::new("sources", "Tasks by link", columns);
        for (link, OverTime { sources, .. }) in self.links_over_time() {
            for source in sources {
                let ids = [source.job, source.task].map(|id| Cell::Id(id.into()));
                table.row([Cell::text(&link.link)].into_iter().chain(ids).chain([Cell::count(source.bytes)]));
            }
        }
        table
    }

    /// Bytes of jobs on each link.
    pub fn job_links_table(&self) -> Table {
        let columns = [
            Column::new("link", "link"),
            Column::new("job", "job").means("Missing for background traffic"),
            Column::new("bytes", "bytes"),
            Column::new("share", "share").means("Of the link's bytes"),
        ];
        let mut table = Table::new("job_links", "Jobs by link", columns);
        for (link, OverTime { jobs, .. }) in self.links_over_time() {
            for of in jobs {
                let share = of.bytes as f64 / link.amount.bytes.max(1) as f64;
                let job = Cell::maybe(of.job, |job| Cell::Id(job.into()));
                table.row([Cell::text(&link.link), job, Cell::count(of.bytes), Cell::Share(share)]);
            }
        }
        table
    }

    /// Links with their use over time.
    fn links_over_time(&self) -> impl Iterator<Item = (&LinkReport, &OverTime)> {
        self.links.all.iter().flatten().filter_map(|link| Some((link, link.over_time.as_ref()?)))
    }
}

impl CriticalPath {
    /// What the time on the path is spent on, as a part of the run time.
    pub fn parts_table(&self, runtime_ps: u64) -> Table {
        let columns = [
            Column::new("part", "on the path"),
            Column::new("time_ps", "time"),
            Column::new("share", "share of the run time"),
        ];
        let mut table = Table::new("critical_path", "Critical path", columns);
        for (name, time) in self.parts().into_iter().filter(|(_, time)| *time > 0) {
            let share = Cell::Share(time as f64 / runtime_ps.max(1) as f64);
            table.row([Cell::text(name), Cell::Time(time.into()), share]);
        }
        table
    }

    /// Links on the path.
    pub fn links_table(&self) -> Table {
        let columns = [
            Column::new("link", "link on the path"),
            Column::new("transmission_ps", "transmission"),
            Column::new("queueing_ps", "queueing"),
            Column::new("runtime_if_twice_as_fast_ps", "run time if it were twice as fast"),
        ];
        let mut table = Table::new("critical_links", "Links on the critical path", columns);
        for link in &self.links {
            let times = [link.transmission_ps, link.queueing_ps].map(|time| Cell::Time(time.into()));
            let doubled = Cell::maybe(link.runtime_if_twice_as_fast_ps, |time| Cell::Time(time.into()));
            table.row([Cell::text(&link.link)].into_iter().chain(times).chain([doubled]));
        }
        table
    }
}

fn links<'a>(
    name: &'static str,
    title: &str,
    links: impl IntoIterator<Item = &'a LinkReport>,
    wait_is_known: impl Fn(&LinkReport) -> bool,
) -> Table {
    let columns = [
        Column::new("link", "link"),
        Column::new("utilisation", "utilisation").means("Share of the run time in which the link was busy"),
        Column::new("busy_ps", "busy"),
        Column::new("messages", "messages").means("Messages, or packets in the packet model"),
        Column::new("bytes", "bytes"),
        Column::new("waited_ps", "waited").means("Time that messages or packets waited for the link, in sum"),
        Column::new("longest_wait_ps", "longest wait"),
        Column::new("longest_queue_bytes", "longest queue"),
        Column::new("blocked_ps", "blocked")
            .means("Time in which packets waited and none had room behind the link"),
        Column::new("bandwidth_bits_per_s", "bits/s"),
        Column::new("latency_ps", "latency"),
    ];
    let mut table = Table::new(name, title, columns);
    for link in links {
        let time = |time: u64| Cell::Time(time.into());
        let wait = |wait| Cell::maybe(wait_is_known(link).then_some(wait), time);
        table.row([
            Cell::text(&link.link),
            Cell::Share(link.utilisation),
            time(link.busy_ps),
            Cell::count(link.amount.messages),
            Cell::count(link.amount.bytes),
            wait(link.waited_ps),
            wait(link.longest_wait_ps),
            Cell::Bytes(link.longest_queue_bytes.into()),
            time(link.blocked_ps),
            Cell::count(link.bandwidth_bits_per_s),
            time(link.latency_ps),
        ]);
    }
    table
}
