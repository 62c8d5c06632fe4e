//! Weighted max-min rates of flows over links, updated incrementally.
//!
//! The *level* of a flow is its rate over its weight. The level of a link is the level of flows that saturate
//! it. The level of a flow is the least level of its links; that link is its bottleneck. A link that its
//! flows cannot saturate has level infinity.
//!
//! A solve starts at the links whose flows started or ended and recomputes their levels; flows with another
//! bottleneck count as bounded by it. If a level rises, the flows with their bottleneck on that link are
//! *loose*: unbounded until the solve finds their new level. The lowest of the recomputed levels is final,
//! because levels found later in the solve are higher: bounding loose flows only lowers their rates. Its
//! flows get that level, which changes what is left on their other links, and so on upwards. Links and flows
//! that no change reaches are not visited. (Progressive filling, Bertsekas and Gallager §6.5.2, started in
//! the middle.)

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Levels that differ by less than this share are equal.
const EPSILON: f64 = 1e-12;

/// No bottleneck.
const NONE: u32 = u32::MAX;

/// Flows over links, and their rates.
#[derive(Debug, Default)]
pub(super) struct Shares {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// The links of each flow, with its index among the flows of each link.
    routes: Vec<Vec<(u32, u32)>>,
    free: Vec<u32>,
    /// Links whose flows started or ended, or whose capacity changed, since the last solve.
    touched: Vec<u32>,
    /// Number of the current or next solve.
    solve: u32,
    heap: BinaryHeap<Candidate>,
    /// Links whose levels must be computed.
    pending: Vec<u32>,
    changed: Vec<u32>,
    /// Number of levels computed, for tests.
    computed: u64,
}

#[derive(Debug)]
struct Link {
    capacity: f64,
    level: f64,
    /// The level computed in this solve.
    candidate: f64,
    /// Flows over the link, with the index of the link in the flow's route.
    flows: Vec<(u32, u32)>,
    /// The solve that set `level`.
    solved: u32,
    touched: bool,
    pending: bool,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    weight: f64,
    level: f64,
    bottleneck: u32,
    /// The solve in which the flow is loose, and the one that set `level`.
    loose: u32,
    solved: u32,
}

impl Flow {
    /// One that has not started.
    const NEW: Self = Self { weight: 0.0, level: 0.0, bottleneck: NONE, loose: 0, solved: 0 };
}

/// A computed level of a link. The order is reversed: the heap returns the lowest level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    level: f64,
    link: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.level.total_cmp(&self.level).then(other.link.cmp(&self.link))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Shares {
    /// Links with these capacities, without flows.
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link {
            capacity,
            level: f64::INFINITY,
            candidate: f64::INFINITY,
            flows: Vec::new(),
            solved: 0,
            touched: false,
            pending: false,
        };
        Self { links: capacities.into_iter().map(link).collect(), solve: 1, ..Self::default() }
    }

    /// The rate of a flow, from the last solve.
    pub(super) fn rate(&self, flow: u32) -> f64 {
        let Flow { level, weight, .. } = self.flows[flow as usize];
        level * weight
    }

    /// The links of a flow.
    pub(super) fn route(&self, flow: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.routes[flow as usize].iter().map(|&(link, _)| link)
    }

    /// A flow that has not started. Numbers of removed flows are reused.
    pub(super) fn prepare(&mut self) -> u32 {
        match self.free.pop() {
            Some(flow) => {
                self.flows[flow as usize] = Flow::NEW;
                flow
            }
            None => {
                self.flows.push(Flow::NEW);
                self.routes.push(Vec::new());
                self.flows.len() as u32 - 1
            }
        }
    }

    /// Adds a link to the route of a flow that has not started; without effect if the route has it.
    #[inline]
    pub(super) fn add_link(&mut self, flow: u32, link: u32) {
        let route = &mut self.routes[flow as usize];
        if !route.iter().any(|&(other, _)| other == link) {
            route.push((link, NONE));
        }
    }

    /// Starts a flow over at least one link.
    pub(super) fn begin(&mut self, flow: u32, weight: f64) {
        let state = &mut self.flows[flow as usize];
        (state.weight, state.loose) = (weight, self.solve);
        for (nth, (link, place)) in (0..).zip(&mut self.routes[flow as usize]) {
            let state = &mut self.links[*link as usize];
            *place = state.flows.len() as u32;
            state.flows.push((flow, nth));
            if !std::mem::replace(&mut state.touched, true) {
                self.touched.push(*link);
            }
        }
    }

    /// Removes a flow that has started.
    pub(super) fn remove(&mut self, flow: u32) {
        self.leave_links(flow);
        self.free.push(flow);
    }

    /// A flow that has started becomes one that has not, without a route.
    pub(super) fn withdraw(&mut self, flow: u32) {
        self.leave_links(flow);
        self.flows[flow as usize] = Flow::NEW;
    }

    fn leave_links(&mut self, flow: u32) {
        for nth in 0..self.routes[flow as usize].len() {
            let (link, place) = self.routes[flow as usize][nth];
            let state = &mut self.links[link as usize];
            state.flows.swap_remove(place as usize);
            if let Some(&(moved, nth)) = state.flows.get(place as usize) {
                self.routes[moved as usize][nth as usize].1 = place;
            }
            if !std::mem::replace(&mut state.touched, true) {
                self.touched.push(link);
            }
        }
        self.clear(flow);
    }

    /// A flow that has not started has no route.
    pub(super) fn clear(&mut self, flow: u32) {
        self.routes[flow as usize].clear();
    }

    /// Sets the capacity of a link; returns what it has more.
    pub(super) fn set_capacity(&mut self, link: u32, capacity: f64) -> f64 {
        let state = &mut self.links[link as usize];
        if !std::mem::replace(&mut state.touched, true) {
            self.touched.push(link);
        }
        capacity - std::mem::replace(&mut state.capacity, capacity)
    }

    /// The flows whose rates changed in the last solve.
    pub(super) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Updates all rates.
    pub(super) fn solve(&mut self) {
        self.changed.clear();
        while let Some(link) = self.touched.pop() {
            self.links[link as usize].touched = false;
            self.mark_pending(link);
        }
        self.compute_pending();
        while let Some(Candidate { level, link }) = self.heap.pop() {
            let state = &mut self.links[link as usize];
            if state.solved == self.solve || state.candidate != level {
                continue;
            }
            (state.solved, state.level) = (self.solve, level);
            self.bound_flows(link, level);
            self.compute_pending();
        }
        self.solve += 1;
    }

    /// Marks a link whose level must be computed.
    #[inline]
    fn mark_pending(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if state.solved != self.solve && !std::mem::replace(&mut state.pending, true) {
            self.pending.push(link);
        }
    }

    fn compute_pending(&mut self) {
        while let Some(link) = self.pending.pop() {
            self.links[link as usize].pending = false;
            self.compute(link);
        }
    }

    /// Computes the level of a link from what is known of its flows' other links.
    fn compute(&mut self, link: u32) {
        self.computed += 1;
        let state = &self.links[link as usize];
        // Weight of the flows that this link may bound, and rate of those bounded elsewhere.
        let (mut weight, mut taken, mut highest, mut loose) = (0.0, 0.0, 0.0f64, false);
        for &(flow, _) in &state.flows {
            let flow = &self.flows[flow as usize];
            let is_loose = flow.loose == self.solve && flow.solved != self.solve;
            loose |= is_loose;
            if is_loose || flow.bottleneck == link {
                weight += flow.weight;
            } else {
                taken += flow.weight * flow.level;
                highest = highest.max(flow.level);
            }
        }
        let mut level = match weight > 0.0 {
            true => (state.capacity - taken) / weight,
            false if taken <= state.capacity * (1.0 + EPSILON) => f64::INFINITY,
            // Flows bounded elsewhere overfill the link: all of them are bounded here, with equal levels.
            false => 0.0,
        };
        let bounds = highest > level * (1.0 + EPSILON);
        // Flows above the level are bounded by this link, too. Iterate: each round bounds fewer flows
        // elsewhere, and the level rises to its limit.
        let mut last = f64::NEG_INFINITY;
        while highest > level && level > last {
            last = level;
            (weight, taken) = (0.0, 0.0);
            for &(flow, _) in &state.flows {
                let flow = &self.flows[flow as usize];
                let is_loose = flow.loose == self.solve && flow.solved != self.solve;
                if is_loose || flow.bottleneck == link || flow.level > level {
                    weight += flow.weight;
                } else {
                    taken += flow.weight * flow.level;
                }
            }
            level = (state.capacity - taken) / weight;
        }
        let before = state.level;
        let state = &mut self.links[link as usize];
        state.candidate = level;
        if level == f64::INFINITY {
            state.level = level;
            return;
        }
        let rises = level > before * (1.0 + EPSILON);
        let falls = level < before * (1.0 - EPSILON);
        if rises || falls || loose || bounds {
            self.heap.push(Candidate { level, link });
        }
        if rises {
            self.loosen(link);
        }
    }

    /// Makes the flows with their bottleneck on this link loose.
    fn loosen(&mut self, link: u32) {
        for nth in 0..self.links[link as usize].flows.len() {
            let (number, _) = self.links[link as usize].flows[nth];
            let flow = &mut self.flows[number as usize];
            if flow.bottleneck != link || flow.loose == self.solve || flow.solved == self.solve {
                continue;
            }
            flow.loose = self.solve;
            self.mark_others(number, link);
        }
    }

    #[inline]
    fn mark_others(&mut self, flow: u32, link: u32) {
        for nth in 0..self.routes[flow as usize].len() {
            let (other, _) = self.routes[flow as usize][nth];
            if other != link {
                self.mark_pending(other);
            }
        }
    }

    /// Sets the level of the flows that a link bounds.
    fn bound_flows(&mut self, link: u32, level: f64) {
        for nth in 0..self.links[link as usize].flows.len() {
            let (number, _) = self.links[link as usize].flows[nth];
            let flow = &mut self.flows[number as usize];
            let was_loose = flow.loose == self.solve;
            let above = flow.level > level * (1.0 + EPSILON);
            if flow.solved == self.solve || !(was_loose || above || flow.bottleneck == link) {
                continue;
            }
            let moved = (flow.level - level).abs() > level * EPSILON;
            (flow.solved, flow.bottleneck) = (self.solve, link);
            if moved {
                flow.level = level;
                self.changed.push(number);
            }
            if moved || was_loose {
                self.mark_others(number, link);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Progressive filling from scratch: repeatedly, the link with the lowest level sets it for its flows.
    fn filled(capacities: &[f64], flows: &[(Vec<u32>, f64)]) -> Vec<f64> {
        let mut rates = vec![f64::NAN; flows.len()];
        let mut left = capacities.to_vec();
        while rates.iter().any(|rate| rate.is_nan()) {
            let open = |link: usize| {
                let crosses = |flow: &usize| flows[*flow].0.contains(&(link as u32)) && rates[*flow].is_nan();
                (0..flows.len()).filter(crosses).collect::<Vec<_>>()
            };
            let level = |link: usize| left[link] / open(link).iter().map(|&flow| flows[flow].1).sum::<f64>();
            let links = (0..left.len()).filter(|&link| !open(link).is_empty());
            let lowest = links.min_by(|&a, &b| level(a).total_cmp(&level(b))).unwrap();
            let (level, flows_of) = (level(lowest), open(lowest));
            for flow in flows_of {
                rates[flow] = level * flows[flow].1;
                flows[flow].0.iter().for_each(|&link| left[link as usize] -= rates[flow]);
            }
        }
        rates
    }

    fn add(shares: &mut Shares, route: &[u32], weight: f64) -> u32 {
        let flow = shares.prepare();
        route.iter().for_each(|&link| shares.add_link(flow, link));
        shares.begin(flow, weight);
        flow
    }

    fn solved(shares: &mut Shares) -> Vec<u32> {
        shares.solve();
        shares.changed().to_vec()
    }

    fn capacity() -> impl Strategy<Value = f64> {
        prop_oneof![Just(1.0), 0.1f64..10.0, Just(1e9)]
    }

    fn flow(links: u32) -> impl Strategy<Value = (Vec<u32>, f64)> {
        let weight = prop_oneof![3 => Just(1.0), 1 => 0.01f64..100.0];
        (prop::collection::btree_set(0..links, 1..5), weight)
            .prop_map(|(route, weight)| (route.into_iter().collect(), weight))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Flows start and end, and capacities change; after each moment all rates equal those of filling from scratch.
        #[test]
        fn as_filled_from_the_beginning(
            mut capacities in prop::collection::vec(capacity(), 8),
            moments in prop::collection::vec(
                (
                    prop::collection::vec(flow(8), 0..5),
                    prop::collection::vec(any::<u32>(), 0..4),
                    prop::collection::vec((0u32..8, capacity()), 0..3),
                ),
                1..25,
            ),
        ) {
            let mut shares = Shares::new(capacities.clone());
            let mut flows: Vec<(u32, (Vec<u32>, f64))> = Vec::new();
            let mut known = std::collections::HashMap::new();
            for (come, go, other) in moments {
                for (link, capacity) in other {
                    capacities[link as usize] = capacity;
                    shares.set_capacity(link, capacity);
                }
                for which in go {
                    if !flows.is_empty() {
                        let (flow, _) = flows.swap_remove(which as usize % flows.len());
                        shares.remove(flow);
                        known.remove(&flow);
                    }
                }
                for (route, weight) in come {
                    flows.push((add(&mut shares, &route, weight), (route, weight)));
                }
                for flow in solved(&mut shares) {
                    known.insert(flow, shares.rate(flow));
                }
                let wanted = filled(&capacities, &flows.iter().map(|(_, flow)| flow.clone()).collect::<Vec<_>>());
                for ((flow, _), wanted) in flows.iter().zip(wanted) {
                    let rate = shares.rate(*flow);
                    prop_assert!((rate / wanted - 1.0).abs() < 1e-9, "flow {flow}: {rate} for {wanted}\n{flows:?}");
                    // `changed` reports every change of a rate.
                    prop_assert!((known[flow] / wanted - 1.0).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn what_does_not_touch_is_not_computed() {
        // Pairs of links, each with flows of its own.
        let mut shares = Shares::new(vec![1.0; 200]);
        for pair in 0..100 {
            add(&mut shares, &[2 * pair, 2 * pair + 1], 1.0);
            add(&mut shares, &[2 * pair], 1.0);
        }
        assert_eq!(solved(&mut shares).len(), 200);
        let before = shares.computed;
        add(&mut shares, &[7], 1.0);
        // The new flow gets half of its link.
        assert_eq!(solved(&mut shares).len(), 1);
        assert!(shares.computed - before <= 4, "{}", shares.computed - before);
    }
}
