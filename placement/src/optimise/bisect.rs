//! Splits a graph into halves of given sizes with little weight between them: coarsen by matching, split the
//! coarsest graph, and improve the split move by move on the way back (Karypis & Kumar 1998, Fiduccia &
//! Mattheyses 1982).

use std::collections::BinaryHeap;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::matrix::CommGraph;

/// Vertices of the coarsest graph.
const COARSEST: usize = 48;
/// Splits tried on the coarsest graph.
const TRIES: usize = 12;
/// Rounds of improvement per level.
const ROUNDS: usize = 6;

/// A graph to split.
pub(super) struct SplitProblem {
    pub graph: CommGraph,
    /// Ranks per vertex.
    pub sizes: Vec<u32>,
    /// Cost of a vertex on the right minus its cost on the left, due to edges to the outside.
    pub bias: Vec<f64>,
    /// Cost of a unit of weight between the halves.
    pub across: f64,
}

/// Returns for each vertex whether it goes right; if all sizes are 1, the left half has exactly `left`
/// vertices.
pub(super) fn bisect(problem: &SplitProblem, left: u32, random: &mut SmallRng) -> Vec<bool> {
    if problem.graph.len() > COARSEST
        && let Some((coarse, group)) = coarsen(problem, random)
    {
        let split = bisect(&coarse, left, random);
        let mut right: Vec<bool> = group.iter().map(|&g| split[g as usize]).collect();
        improve(problem, &mut right, left);
        return right;
    }
    let mut best: Option<(f64, Vec<bool>)> = None;
    for _ in 0..TRIES {
        let mut right = grow(problem, left, random);
        improve(problem, &mut right, left);
        let off = left_size(problem, &right).abs_diff(left);
        let cost = cost(problem, &right) + f64::from(off) * 1e-9;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, right));
        }
    }
    best.map(|(_, right)| right).unwrap_or_default()
}

fn left_size(problem: &SplitProblem, right: &[bool]) -> u32 {
    problem.sizes.iter().zip(right).filter(|(_, right)| !**right).map(|(size, _)| size).sum()
}

/// The cost of a split.
pub(super) fn cost(problem: &SplitProblem, right: &[bool]) -> f64 {
    let mut cost = 0.0;
    for v in 0..problem.graph.len() {
        if right[v] {
            cost += problem.bias[v];
            let cut = problem.graph.neighbours(v as u32).iter().filter(|(u, _)| !right[*u as usize]);
            cost += problem.across * cut.map(|(_, weight)| weight).sum::<f64>();
        }
    }
    cost
}

/// Merges neighbours along heavy edges; `None` if that hardly shrinks the graph.
fn coarsen(problem: &SplitProblem, random: &mut SmallRng) -> Option<(SplitProblem, Vec<u32>)> {
    let vertices = problem.graph.len();
    let heaviest = 3 * problem.sizes.iter().sum::<u32>() / (2 * COARSEST as u32) + 1;
    let mut group = vec![u32::MAX; vertices];
    let mut visits: Vec<u32> = (0..vertices as u32).collect();
    visits.shuffle(random);
    let mut groups = 0u32;
    for v in visits {
        if group[v as usize] != u32::MAX {
            continue;
        }
        let size = problem.sizes[v as usize];
        let free = problem.graph.neighbours(v).iter().filter(|(u, _)| {
            *u != v && group[*u as usize] == u32::MAX && size + problem.sizes[*u as usize] <= heaviest
        });
        // Among equally heavy edges, prefer small vertices to keep sizes even.
        let key = |(u, weight): &(u32, f64)| weight / f64::from(problem.sizes[*u as usize]);
        let mate = free.max_by(|a, b| key(a).total_cmp(&key(b)));
        group[v as usize] = groups;
        if let Some((u, _)) = mate {
            group[*u as usize] = groups;
        }
        groups += 1;
    }
    if groups as usize * 20 > vertices * 19 {
        return None;
    }
    let mut sizes = vec![0; groups as usize];
    let mut bias = vec![0.0; groups as usize];
    for (v, &g) in group.iter().enumerate() {
        sizes[g as usize] += problem.sizes[v];
        bias[g as usize] += problem.bias[v];
    }
    let mut pairs: Vec<(u32, u32, f64)> = (0..vertices as u32)
        .flat_map(|v| problem.graph.neighbours(v).iter().map(move |&(u, weight)| (v, u, weight)))
        .map(|(v, u, weight)| (group[v as usize], group[u as usize], weight))
        .filter(|&(a, b, _)| a < b)
        .collect();
    pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
    pairs.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    let graph = CommGraph::new(groups as usize, pairs.iter().copied());
    Some((SplitProblem { graph, sizes, bias, across: problem.across }, group))
}

/// Grows the left half from a random vertex; each step adds the cheapest vertex.
fn grow(problem: &SplitProblem, left: u32, random: &mut SmallRng) -> Vec<bool> {
    let vertices = problem.graph.len();
    let mut right = vec![true; vertices];
    let mut gain: Vec<f64> =
        (0..vertices as u32).map(|v| problem.bias[v as usize] - degree(problem, v)).collect();
    let mut grown = 0;
    let mut seeded = false;
    while grown < left {
        let open = (0..vertices).filter(|&v| right[v]);
        let next = if seeded {
            open.max_by(|&a, &b| gain[a].total_cmp(&gain[b]))
        } else {
            Some(random.random_range(0..vertices))
        };
        let Some(next) = next else { break };
        seeded = true;
        let size = problem.sizes[next];
        if grown + size > left && grown + size - left > left - grown {
            break;
        }
        right[next] = false;
        grown += size;
        for &(u, weight) in problem.graph.neighbours(next as u32) {
            gain[u as usize] += 2.0 * problem.across * weight;
        }
    }
    right
}

fn degree(problem: &SplitProblem, vertex: u32) -> f64 {
    problem.across * problem.graph.neighbours(vertex).iter().map(|(_, weight)| weight).sum::<f64>()
}

/// A possible move, ordered by gain.
#[derive(PartialEq)]
struct Move {
    gain: f64,
    vertex: u32,
}

impl Eq for Move {}

impl Ord for Move {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.gain.total_cmp(&other.gain).then(other.vertex.cmp(&self.vertex))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Rounds of single moves from the fuller half, good or bad, each vertex once per round; each round keeps its
/// best state.
pub(super) fn improve(problem: &SplitProblem, right: &mut [bool], left: u32) {
    let vertices = problem.graph.len();
    let largest = i64::from(problem.sizes.iter().copied().max().unwrap_or(1));
    let patience = 64 + vertices / 16;
    for _ in 0..ROUNDS {
        let mut gain: Vec<f64> = (0..vertices as u32)
            .map(|v| {
                let side = right[v as usize];
                let ties = problem.graph.neighbours(v).iter();
                let pull: f64 = ties.map(|&(u, w)| if right[u as usize] == side { -w } else { w }).sum();
                problem.across * pull
                    + if side { problem.bias[v as usize] } else { -problem.bias[v as usize] }
            })
            .collect();
        let mut heaps = [BinaryHeap::new(), BinaryHeap::new()];
        for v in 0..vertices as u32 {
            heaps[usize::from(right[v as usize])].push(Move { gain: gain[v as usize], vertex: v });
        }
        let mut moved = vec![false; vertices];
        let mut history: Vec<u32> = Vec::new();
        // Excess of the left half.
        let mut excess = i64::from(left_size(problem, right)) - i64::from(left);
        let (mut total, mut best, mut best_at) = (0.0, (excess.abs(), 0.0), 0);
        while history.len() < best_at + patience {
            // With unit sizes a balanced split moves alternately; larger vertices may leave a little excess.
            let from = match excess.signum() {
                1 => 0,
                -1 => 1,
                _ => match (peek(&mut heaps[0], &gain, &moved), peek(&mut heaps[1], &gain, &moved)) {
                    (Some(a), Some(b)) => usize::from(b > a),
                    (Some(_), None) => 0,
                    (None, Some(_)) => 1,
                    (None, None) => break,
                },
            };
            if peek(&mut heaps[from], &gain, &moved).is_none() {
                break;
            }
            let Some(Move { vertex, .. }) = heaps[from].pop() else { break };
            let v = vertex as usize;
            moved[v] = true;
            total += gain[v];
            excess += if right[v] { i64::from(problem.sizes[v]) } else { -i64::from(problem.sizes[v]) };
            right[v] = !right[v];
            history.push(vertex);
            for &(u, weight) in problem.graph.neighbours(vertex) {
                let u = u as usize;
                let change = if right[u] == right[v] { -2.0 } else { 2.0 };
                gain[u] += change * problem.across * weight;
                if !moved[u] {
                    heaps[usize::from(right[u])].push(Move { gain: gain[u], vertex: u as u32 });
                }
            }
            // Balance first, as far as possible; then cost.
            let off = if excess.abs() < largest { 0 } else { excess.abs() };
            let best_off = if best.0 < largest { 0 } else { best.0 };
            if off < best_off || off == best_off && total > best.1 + 1e-9 * total.abs() {
                best = (excess.abs(), total);
                best_at = history.len();
            }
        }
        for &v in &history[best_at..] {
            right[v as usize] = !right[v as usize];
        }
        if best_at == 0 {
            return;
        }
    }
}

/// The best gain in a half; outdated entries are dropped.
fn peek(heap: &mut BinaryHeap<Move>, gain: &[f64], moved: &[bool]) -> Option<f64> {
    while let Some(top) = heap.peek() {
        let v = top.vertex as usize;
        if !moved[v] && top.gain == gain[v] {
            return Some(top.gain);
        }
        heap.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn grid(x: u32, y: u32) -> SplitProblem {
        let mut pairs = Vec::new();
        for j in 0..y {
            for i in 0..x {
                let v = j * x + i;
                if i + 1 < x {
                    pairs.push((v, v + 1, 1.0));
                }
                if j + 1 < y {
                    pairs.push((v, v + x, 1.0));
                }
            }
        }
        let n = (x * y) as usize;
        SplitProblem {
            graph: CommGraph::new(n, pairs.into_iter()),
            sizes: vec![1; n],
            bias: vec![0.0; n],
            across: 1.0,
        }
    }

    #[test]
    fn a_grid_is_cut_across_its_short_side() {
        let problem = grid(32, 8);
        let right = bisect(&problem, 128, &mut SmallRng::seed_from_u64(1));
        assert_eq!(left_size(&problem, &right), 128);
        assert!(cost(&problem, &right) <= 10.0, "{}", cost(&problem, &right));
    }

    #[test]
    fn uneven_halves_and_a_bias_are_heeded() {
        let mut problem = grid(12, 12);
        problem.bias[143] = -1000.0;
        problem.bias[0] = 1000.0;
        let right = bisect(&problem, 40, &mut SmallRng::seed_from_u64(2));
        assert_eq!(left_size(&problem, &right), 40);
        assert!(right[143] && !right[0]);
    }
}
