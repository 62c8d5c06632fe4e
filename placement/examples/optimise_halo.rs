//! How near the optimiser comes to a known optimum: a halo exchange of 16 × 16 × 16 ranks whose numbers were scrambled,
//! on networks where a perfect placement exists. `cargo run --release -p placement --example optimise_halo [SEED]`

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

#[path = "../tests/networks/mod.rs"]
mod networks;

use networks::{FatTree, Torus};
use placement::optimise::{CommMatrix, Distances, SearchOptions, optimise};
use placement::{Error, Placement};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

const SIDE: u32 = 16;
const RANKS: u32 = SIDE * SIDE * SIDE;
const BYTES: u64 = 65_536;

fn halo() -> CommMatrix {
    let mut names: Vec<u32> = (0..RANKS).collect();
    names.shuffle(&mut SmallRng::seed_from_u64(2024));
    let rank = |x, y, z| names[((z * SIDE + y) * SIDE + x) as usize];
    let mut matrix = CommMatrix::new(RANKS);
    for (z, y, x) in (0..RANKS).map(|at| (at / SIDE / SIDE, at / SIDE % SIDE, at % SIDE)) {
        for (i, j, k) in [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1)] {
            if i < SIDE && j < SIDE && k < SIDE {
                matrix.push(rank(x, y, z), rank(i, j, k), BYTES);
                matrix.push(rank(i, j, k), rank(x, y, z), BYTES);
            }
        }
    }
    matrix
}

/// Halo faces of the whole grid, each a pair of ranks.
const PAIRS: u64 = 3 * (SIDE as u64 - 1) * (SIDE * SIDE) as u64;

/// Pairs between boxes of so many ranks a side that tile the grid.
fn pairs_between(boxes: [u64; 3]) -> u64 {
    boxes.iter().map(|&side| (u64::from(SIDE) / side - 1) * u64::from(SIDE * SIDE)).sum()
}

fn show(
    name: &str,
    network: &impl Distances,
    before: &Placement,
    optimum_pairs_hops: u64,
    seed: u64,
) -> Result<(), Error> {
    let done = optimise(
        &mut halo(),
        network,
        before,
        SearchOptions { seed, time_limit: std::time::Duration::from_secs(60) },
    )?;
    let optimum = u128::from(optimum_pairs_hops) * 2 * u128::from(BYTES);
    let of_optimum = |cost: u128| cost as f64 / optimum as f64;
    println!("{name}: hop-bytes in parts of the optimum, {optimum}");
    println!(
        "  before {:.3}, after {:.3}",
        of_optimum(done.before.hop_bytes),
        of_optimum(done.after.hop_bytes)
    );
    println!("  best of {} random {:.3}", done.random_rivals, of_optimum(done.best_random));
    println!("  {:.1} s\n", done.elapsed.as_secs_f64());
    Ok(())
}

fn main() -> Result<(), Error> {
    let seed = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let torus = Torus::new(vec![SIDE; 3]);
    show("torus 16×16×16, a rank a node", &torus, &Placement::block(RANKS, RANKS, 1)?, PAIRS, seed)?;
    let torus = Torus::new(vec![8; 3]);
    show(
        "torus 8×8×8, 8 ranks a node",
        &torus,
        &Placement::block(RANKS, 512, 8)?,
        pairs_between([2, 2, 2]),
        seed,
    )?;
    // 256 nodes of 16 ranks (4×2×2), 16 nodes a leaf (16×4×4 at best 8×8×4).
    let tree = FatTree { nodes: 256, per_leaf: 16 };
    let optimum = 2 * (pairs_between([4, 2, 2]) + pairs_between([8, 8, 4]));
    show(
        "fat tree of 256 nodes, 16 a leaf, 16 ranks a node",
        &tree,
        &Placement::block(RANKS, 256, 16)?,
        optimum,
        seed,
    )
}
