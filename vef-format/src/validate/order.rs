//! Checks dependencies: each task advances as far as possible, as in a replay without time.
//!
//! Tasks that do not reach their ends wait for each other: such a cycle may consist of dependencies, program order and
//! collectives. Of a collective only those waits count that every algorithm has ([`Flow`]), so every reported cycle is
//! real.

use super::graph::{BROKEN, DEPENDENCY, Flow, GIVES, Graph, Node, PART, STARTED, WAITED};
use super::records::Validator;
use super::report::{Kind, Log, Place, Report};
use crate::id_table::NONE;
use crate::units::Count;
use std::collections::HashMap;
use std::fmt::Write;

/// Maximum number of steps of a cycle in a report.
const MAX_STEPS: usize = 12;

impl Validator {
    /// Completes the check of the records and checks their dependencies.
    pub fn finish(self) -> Report {
        let (mut log, tallies, graph) = self.end();
        let stuck = graph.map_or(0, |mut graph| check(&mut graph, &mut log));
        log.report(tallies, stuck)
    }
}

/// Reports cycles; returns the number of tasks that do not reach their ends.
fn check(graph: &mut Graph, log: &mut Log) -> u64 {
    graph.communicators.rewind();
    let mut advance = Advance::new(graph);
    advance.run();
    let stuck = advance.cursors.iter().filter(|&&cursor| cursor != NONE).count();
    if stuck > 0 {
        advance.report_cycles(log);
    }
    stuck as u64
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wait {
    /// The start of a node.
    Node(u32),
    /// The completion of its part of a collective.
    Collective(u32),
}

struct Advance<'a> {
    graph: &'a mut Graph,
    /// The next record of each task; [`NONE`]: at the end.
    cursors: Vec<u32>,
    /// The task that waits for something, by what; further ones follow in `next_waiter`.
    waiters: HashMap<Wait, u32>,
    next_waiter: Vec<u32>,
    ready: Vec<u32>,
}

impl<'a> Advance<'a> {
    fn new(graph: &'a mut Graph) -> Self {
        let cursors: Vec<u32> = graph.tasks.iter().map(|task| task.first).collect();
        let next_waiter = vec![NONE; cursors.len()];
        let ready = (0..cursors.len() as u32).rev().collect();
        Self { graph, cursors, waiters: HashMap::new(), next_waiter, ready }
    }

    fn run(&mut self) {
        while let Some(task) = self.ready.pop() {
            while self.cursors[task as usize] != NONE {
                let index = self.cursors[task as usize];
                if let Some(wait) = self.wait(index) {
                    if let Wait::Node(other) = wait {
                        self.graph.nodes[other as usize].flags |= WAITED;
                    }
                    let before = self.waiters.insert(wait, task);
                    self.next_waiter[task as usize] = before.unwrap_or(NONE);
                    break;
                }
                self.start(index);
            }
        }
    }

    /// What the record at `index` waits for.
    fn wait(&self, index: u32) -> Option<Wait> {
        let Node { dependency, task, flags, .. } = self.graph.nodes[index as usize];
        if flags & BROKEN != 0 || flags & DEPENDENCY == 0 {
            return None;
        }
        if flags & DEPENDENCY != 3 {
            let other = self.graph.ids.get(dependency)?;
            return (self.graph.nodes[other as usize].flags & STARTED == 0).then_some(Wait::Node(other));
        }
        let number = self.graph.collective_ids.get(dependency)?;
        (!self.is_over(number, task)).then_some(Wait::Collective(number))
    }

    /// Whether the part of `task` in a collective is complete.
    fn is_over(&self, number: u32, task: u32) -> bool {
        let collective = &self.graph.collectives[number as usize];
        if collective.broken || collective.comm == NONE {
            return true;
        }
        let communicator = self.graph.communicators.get(collective.comm);
        let member = communicator.member(self.graph.tasks[task as usize].rank);
        let own = member.is_none_or(|member| communicator.calls(member) > collective.position);
        let all_arrived = collective.arrived == collective.givers;
        let needs = match collective.flow {
            Flow::All => !all_arrived,
            Flow::FromRoot => collective.root != task && !self.root_arrived(number),
            Flow::ToRoot => collective.root == task && !all_arrived,
            Flow::Own => false,
        };
        own && (!needs || self.graph.takes_nothing.contains(&(number, task)))
    }

    /// Whether the root has called the collective, which is not broken.
    fn root_arrived(&self, number: u32) -> bool {
        let collective = &self.graph.collectives[number as usize];
        let Some(root) = self.graph.tasks.get(collective.root as usize) else { return false };
        let communicator = self.graph.communicators.get(collective.comm);
        communicator.member(root.rank).is_some_and(|member| communicator.calls(member) > collective.position)
    }

    fn start(&mut self, index: u32) {
        let node = &mut self.graph.nodes[index as usize];
        node.flags |= STARTED;
        let Node { task, other, next, flags, .. } = *node;
        self.cursors[task as usize] = next;
        if flags & WAITED != 0 {
            self.wake(Wait::Node(index));
        }
        if flags & PART == 0 {
            return;
        }
        let collective = &mut self.graph.collectives[other as usize];
        collective.arrived += u32::from(flags & GIVES != 0);
        let comm = collective.comm;
        let wakes = collective.arrived == collective.givers || collective.root == task;
        if comm != NONE {
            let communicator = self.graph.communicators.get_mut(comm);
            if let Some(member) = communicator.member(self.graph.tasks[task as usize].rank) {
                communicator.call(member);
            }
        }
        if wakes {
            self.wake(Wait::Collective(other));
        }
    }

    /// Wakes the tasks that wait for `what`.
    fn wake(&mut self, what: Wait) {
        let mut task = self.waiters.remove(&what).unwrap_or(NONE);
        while task != NONE {
            self.ready.push(task);
            task = std::mem::replace(&mut self.next_waiter[task as usize], NONE);
        }
    }

    /// For each stuck task, a record that has not started and that the task waits for.
    fn needs(&self) -> Vec<u32> {
        let mut needs = vec![NONE; self.cursors.len()];
        let waits: Vec<Option<Wait>> = self
            .cursors
            .iter()
            .map(|&cursor| if cursor == NONE { None } else { self.wait(cursor) })
            .collect();
        // For each collective that a task waits for: the root's part if it has not started, otherwise any.
        let mut parts: HashMap<u32, u32> = waits
            .iter()
            .filter_map(|wait| match wait {
                Some(Wait::Collective(number)) => Some((*number, NONE)),
                _ => None,
            })
            .collect();
        for (index, node) in (0u32..).zip(self.graph.nodes.iter()) {
            if node.flags & (PART | STARTED) != PART {
                continue;
            }
            let Some(part) = parts.get_mut(&node.other) else { continue };
            let collective = &self.graph.collectives[node.other as usize];
            let needed = match collective.flow {
                Flow::FromRoot => collective.root == node.task,
                _ => node.flags & GIVES != 0,
            };
            if needed {
                *part = index;
            }
            if waits[node.task as usize] == Some(Wait::Collective(node.other)) {
                needs[node.task as usize] = index;
            }
        }
        for (need, wait) in needs.iter_mut().zip(&waits) {
            match wait {
                Some(Wait::Node(index)) => *need = *index,
                Some(Wait::Collective(number)) if *need == NONE => *need = parts[number],
                _ => {}
            }
        }
        needs
    }

    /// Follows the needs of each stuck task until a task recurs.
    fn report_cycles(&self, log: &mut Log) {
        let needs = self.needs();
        let mut seen_in = vec![NONE; needs.len()];
        for start in 0..needs.len() as u32 {
            let mut task = start;
            while seen_in[task as usize] == NONE && needs[task as usize] != NONE {
                seen_in[task as usize] = start;
                task = self.graph.nodes[needs[task as usize] as usize].task;
            }
            if seen_in[task as usize] == start && needs[task as usize] != NONE {
                self.report_cycle(task, &needs, log);
            }
        }
    }

    /// Reports the cycle with `first`.
    fn report_cycle(&self, first: u32, needs: &[u32], log: &mut Log) {
        let mut tasks = vec![first];
        loop {
            let last = tasks[tasks.len() - 1];
            let next = self.graph.nodes[needs[last as usize] as usize].task;
            if next == first {
                break;
            }
            tasks.push(next);
        }
        // Begin with the record that is first in the file.
        let lowest = (0..tasks.len()).min_by_key(|&at| self.cursors[tasks[at] as usize]).unwrap_or(0);
        tasks.rotate_left(lowest);
        log.add_with(Kind::Cycle, || self.describe(&tasks, needs));
    }

    fn describe(&self, tasks: &[u32], needs: &[u32]) -> (Place, String, Vec<u64>) {
        let graph = &self.graph;
        let mut lines = Vec::new();
        let mut text = "tasks wait for each other: ".to_owned();
        if tasks.len() == 1 {
            text = "a task waits for itself: ".to_owned();
        }
        let first = self.cursors[tasks[0] as usize];
        let home = graph.place(first);
        text += &graph.place_with_task(first);
        for (step, &task) in tasks.iter().take(MAX_STEPS).enumerate() {
            let (here, needed) = (self.cursors[task as usize], needs[task as usize]);
            let next = graph.nodes[needed as usize].task as usize;
            let Node { dependency, flags, .. } = graph.nodes[here as usize];
            let what = if flags & DEPENDENCY == 3 { "G" } else { "id " };
            let before = self.cursors[next];
            let last = match step + 1 < tasks.len() {
                true => graph.place_with_task(before),
                false => graph.place(before).to_string(),
            };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{} needs {what}{dependency} at {}{last}",
                if step > 0 { ", which" } else { "" },
                match needed == before {
                    true => String::new(),
                    false => format!("{}, which comes after ", graph.place(needed)),
                }
            );
            lines.extend([graph.line(here), graph.line(needed)]);
        }
        if tasks.len() > MAX_STEPS {
            let _ = write!(
                text,
                ", and so on over {} back to {home}",
                Count(tasks.len() - MAX_STEPS, "more task")
            );
        }
        (home, text, lines)
    }
}
