//! What the tasks did with files in the captured run, of containers and captures.

use hashbrown::HashMap;
use results::report::{self, FileCalls, FileOfRank, InFile, OfRank};
use std::cmp::Reverse;
use vef_format::container::{ContainerError, Note, Reader, Section};
use vef_format::files::FileUse;
use vef_format::ids::Rank;
use vef_format::units::Picos;

/// What all tasks did with files. Times are in ticks of the trace's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By task: the index of a name, and the calls on it.
    uses: Vec<(Rank, u32, FileUse)>,
}

impl Files {
    /// Those in a container.
    pub(super) fn read(reader: &Reader) -> Result<Self, ContainerError> {
        let mut files = Self::default();
        for (task, mut notes) in reader.notes_of_all(Section::Files)? {
            while let Some((_, note)) = notes.next(reader)? {
                let Note::File { used, name } = note else { continue };
                files.add(task, name, used);
            }
        }
        Ok(files)
    }

    /// Adds the calls of `task` on a file.
    pub(crate) fn add(&mut self, task: Rank, name: &str, used: FileUse) {
        let Self { names, numbers, uses } = self;
        let number = *numbers.entry_ref(name).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() as u32 - 1
        });
        uses.push((task, number, used));
    }

    /// The data of a report with at most `top` rows in each list, of which ticks take `clock`; `None` without files.
    pub(crate) fn report(&self, clock: Picos, top: usize) -> Option<report::Files> {
        let picos = |ticks: u64| u128::from(ticks) * u128::from(clock.0);
        let calls = |used: &FileUse| FileCalls {
            opens: used.opens.into(),
            calls: used.calls.into(),
            reads: used.reads.into(),
            read_bytes: used.read_bytes.into(),
            writes: used.writes.into(),
            written_bytes: used.written_bytes.into(),
            time_ps: picos(used.took.0).into(),
        };
        let mut sums = vec![(0u64, FileUse::default(), (Rank(0), 0)); self.names.len()];
        for (task, file, used) in &self.uses {
            let (ranks, sum, most) = &mut sums[*file as usize];
            if *ranks == 0 || used.took.0 > most.1 {
                *most = (*task, used.took.0);
            }
            *ranks += 1;
            sum.merge(used);
        }
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.sort_by_key(|&file| (Reverse(sums[file].1.took.0), &self.names[file]));
        order.truncate(top);
        let mut uses: Vec<&(Rank, u32, FileUse)> = self.uses.iter().collect();
        uses.sort_by_key(|(task, file, used)| (Reverse(used.took.0), &self.names[*file as usize], *task));
        uses.truncate(top);
        let file = |file: usize| {
            let (ranks, sum, (rank, ticks)) = &sums[file];
            let max = OfRank { rank: rank.0, value: picos(*ticks).into() };
            InFile { file: self.names[file].clone(), ranks: *ranks, calls: calls(sum), max }
        };
        let of_rank = |(task, file, used): &(Rank, u32, FileUse)| FileOfRank {
            file: self.names[*file as usize].clone(),
            rank: task.0,
            calls: calls(used),
        };
        (!self.uses.is_empty()).then(|| report::Files {
            different: self.names.len() as u64,
            files: order.into_iter().map(file).collect(),
            uses: self.uses.len() as u64,
            ranks: uses.into_iter().map(of_rank).collect(),
        })
    }
}
