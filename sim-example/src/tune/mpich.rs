//! Rules for MPICH. Its file must name each collective that the library has, with all cases, so the rules are those that the library itself
//! has, as one JSON text among its data, with the fastest algorithms on this network in their place.
//!
//! A condition (`avg_msg_size<=8`) has the conditions or the algorithm that apply if it holds; else the next one of its level is looked at.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;
use vef_format::operation::Operation;

use super::{Candidate, Library, OPERATIONS, Tuning};

/// What a rule of an operation compares: of Allgather the bytes of all blocks, of others those of a vector or block.
fn compared(operation: Operation) -> &'static str {
    match operation {
        Operation::Allgather => "total_msg_size",
        _ => "avg_msg_size",
    }
}

/// The rules of a library of MPICH: for each collective, and of those that can be tuned, for each kind of communicator.
#[derive(Debug)]
pub struct OwnRules {
    all: BTreeMap<String, Box<RawValue>>,
    tuned: BTreeMap<Operation, BTreeMap<String, Box<RawValue>>>,
}

impl OwnRules {
    /// From the bytes of the library; `None`: they have no rules of MPICH 4.0 or later.
    pub fn find(library: &[u8]) -> Option<Self> {
        let texts = library.split(|&byte| byte == 0).filter(|text| text.starts_with(br#"{"collective="#));
        let parsed =
            texts.filter_map(|text| serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(text).ok());
        // Others are for parts of communicators, and leave collectives out.
        let all = parsed.max_by_key(BTreeMap::len).filter(|all| all.contains_key("collective=ibarrier"))?;
        let mut tuned = BTreeMap::new();
        // A barrier has one algorithm, and keeps its rules.
        for operation in OPERATIONS.into_iter().filter(|operation| *operation != Operation::Barrier) {
            let rules = all.get(&key(operation))?.get();
            let rules: BTreeMap<String, Box<RawValue>> = serde_json::from_str(rules).ok()?;
            if !rules.get(INTRA)?.get().starts_with('{') {
                return None;
            }
            tuned.insert(operation, rules);
        }
        Some(Self { all, tuned })
    }
}

/// Communicators that are no inter-communicators.
const INTRA: &str = "comm_type=intra";

fn key(operation: Operation) -> String {
    format!("collective={}", operation.key())
}

impl Tuning {
    /// Rules for MPICH, `MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE`.
    pub fn mpich_rules(&self, own: &OwnRules) -> String {
        let mut changed = BTreeMap::new();
        for (operation, choices) in self.choices(Library::Mpich) {
            let Some(rules) = own.tuned.get(&operation) else { continue };
            let kinds = rules.iter().map(|(kind, rules)| match kind.as_str() {
                INTRA => format!("\"{kind}\":{}", self.rules(operation, &choices, rules.get())),
                _ => format!("\"{kind}\":{rules}"),
            });
            let kinds: Vec<String> = kinds.collect();
            changed.insert(key(operation), format!("{{{}}}", kinds.join(",")));
        }
        let all = own.all.iter().map(|(key, rules)| {
            format!("\"{key}\":{}", changed.get(key).map_or(rules.get(), String::as_str))
        });
        let all: Vec<String> = all.collect();
        format!("{{{}}}\n", all.join(",\n"))
    }

    /// The rules of an operation, which are `own` for other numbers of ranks, and where an algorithm does not work.
    fn rules(&self, operation: Operation, choices: &[(u64, Candidate)], own: &str) -> String {
        let (compared, ranks) = (compared(operation), self.ranks);
        let blocks = if operation == Operation::Allgather { u64::from(ranks) } else { 1 };
        let mut sizes = String::from("{");
        for (at, (_, candidate)) in choices.iter().enumerate() {
            let algorithm = format!("{{\"algorithm={}\":{{}}}}", candidate.name);
            _ = match choices.get(at + 1) {
                Some((next, _)) => {
                    write!(sizes, "\"{compared}<={}\":{algorithm},", (next * blocks).saturating_sub(1))
                }
                None => write!(sizes, "\"{compared}=any\":{algorithm}}}"),
            };
        }
        let tuned = match operation {
            // Vectors with fewer elements than ranks cannot be scattered.
            Operation::Allreduce | Operation::Reduce => format!(
                r#"{{"is_op_built_in=no":{own},"is_op_built_in=yes":{{"count<pow2":{own},"count=any":{sizes}}}}}"#
            ),
            Operation::Alltoall => {
                format!(r#"{{"is_sendbuf_inplace=yes":{own},"is_sendbuf_inplace=no":{sizes}}}"#)
            }
            _ => sizes,
        };
        format!(
            r#"{{"comm_size<={}":{own},"comm_size<={ranks}":{tuned},"comm_size=any":{own}}}"#,
            ranks.saturating_sub(1)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tuned;
    use super::*;
    use vef_format::units::Picos;

    /// A library whose collectives have the rules A, and with those that are for parts of communicators.
    fn library(intra: &str) -> Vec<u8> {
        let of = |operation: &Operation| {
            format!(
                r#""collective={}":{{{intra},"comm_type=inter":{{"algorithm=B":{{}}}}}}"#,
                operation.key()
            )
        };
        let all: Vec<String> = OPERATIONS.iter().map(of).collect();
        let all = format!(r#"{{{},"collective=ibarrier":{{"algorithm=C":{{}}}}}}"#, all.join(","));
        let part = r#"{"collective=allgather":{"algorithm=D":{}}}"#;
        [b"\x7fELF\0", part.as_bytes(), b"\0collective=\0", all.as_bytes(), b"\0"].concat()
    }

    fn tuning(ranks: u32) -> Tuning {
        let candidates = super::super::candidates(Operation::Allgather);
        let of = |name: &str| *candidates.iter().find(|one| one.name.ends_with(name)).unwrap();
        let (first, last) = (of("intra_brucks"), of("intra_ring"));
        let cell = |bytes, times| Tuned { operation: Operation::Allgather, bytes, times };
        let cells = vec![
            cell(8, vec![(first, Picos(1)), (last, Picos(2))]),
            cell(32, vec![(first, Picos(2)), (last, Picos(1))]),
        ];
        Tuning { ranks, cells }
    }

    #[test]
    fn the_librarys_own_rules_hold_for_all_else() {
        let own = OwnRules::find(&library(r#""comm_type=intra":{"algorithm=A":{}}"#)).unwrap();
        let rules = tuning(5).mpich_rules(&own);
        let allgather = r#""collective=allgather":{"comm_type=inter":{"algorithm=B":{}},"comm_type=intra":{"comm_size<=4":{"algorithm=A":{}},"comm_size<=5":{"total_msg_size<=159":{"algorithm=MPIR_Allgather_intra_brucks":{}},"total_msg_size=any":{"algorithm=MPIR_Allgather_intra_ring":{}}},"comm_size=any":{"algorithm=A":{}}}}"#;
        let bcast = r#""collective=bcast":{"comm_type=intra":{"algorithm=A":{}},"comm_type=inter":{"algorithm=B":{}}}"#;
        for expected in [allgather, bcast, r#""collective=ibarrier":{"algorithm=C":{}}"#] {
            assert!(rules.lines().any(|line| line.contains(expected)), "{expected}: {rules}");
        }
        assert_eq!(rules.lines().count(), 7);
    }

    #[test]
    fn what_has_no_rules_is_no_library_of_mpich() {
        let wrong = [&b""[..], b"\x7fELF", br#"{"collective=allgather":{}}"#, br#"{"collective=ibarrier":{"#];
        for bytes in wrong
            .map(<[u8]>::to_vec)
            .into_iter()
            .chain([library(r#""comm_type=intra":7"#), library(r#""a":{}"#)])
        {
            assert!(OwnRules::find(&bytes).is_none(), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
