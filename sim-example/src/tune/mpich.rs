//! Rules for MPICH. Its file must name each collective that the library has, with all cases, so the rules are those that the library itself
//! has, as one JSON text among its data, with the fastest algorithms on this network in their place.
//!
//! A condition (`avg_msg_size<=8`) has the conditions or the algorithm that apply if it holds; else the next one of its level is looked at.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;
use vef_format::operation::Operation;

use super::{Candidate, Library, Tuning};

/// A level of the rules, each condition as it is written.
type Level<'a> = BTreeMap<&'a str, &'a RawValue>;

/// What a rule of an operation compares: of Allgather the bytes of all blocks, of others those of a vector or block.
fn compared(operation: Operation) -> &'static str {
    match operation {
        Operation::Allgather => "total_msg_size",
        _ => "avg_msg_size",
    }
}

impl Tuning {
    /// Rules for MPICH, `MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE`, from the bytes of its library; `None`: they have no rules of
    /// MPICH 4.0 or later.
    pub fn mpich_rules(&self, library: &[u8]) -> Option<String> {
        let texts = library.split(|&byte| byte == 0).filter(|text| text.starts_with(br#"{"collective="#));
        let parsed = texts.filter_map(|text| serde_json::from_slice::<Level<'_>>(text).ok());
        // Others are for parts of communicators, and leave collectives out.
        let own = parsed.max_by_key(Level::len).filter(|own| own.contains_key("collective=ibarrier"))?;
        let mut of_ranks = BTreeMap::new();
        for (operation, choices) in self.choices(Library::Mpich) {
            let key = format!("collective={}", operation.key());
            let before = own.get_key_value(key.as_str());
            // A collective with one algorithm keeps its rules.
            if let Some((key, rules)) = before.filter(|_| operation != Operation::Barrier) {
                let rules: Level<'_> = serde_json::from_str(rules.get()).ok()?;
                let intra = rules.get("comm_type=intra")?.get();
                let tuned = self.rules(operation, &choices, intra);
                let other = rules.iter().filter(|(kind, _)| **kind != "comm_type=intra");
                let other: String = other.map(|(kind, rules)| format!(",\"{kind}\":{rules}")).collect();
                of_ranks.insert(*key, format!("{{\"comm_type=intra\":{tuned}{other}}}"));
            }
        }
        let level: Vec<String> = own
            .iter()
            .map(|(key, rules)| {
                format!("\"{key}\":{}", of_ranks.get(key).map_or(rules.get(), String::as_str))
            })
            .collect();
        Some(format!("{{{}}}\n", level.join(",\n")))
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

    /// A library with rules for two collectives, and with those that are for parts of communicators.
    fn library() -> Vec<u8> {
        let all = r#"{"collective=allgather":{"comm_type=intra":{"algorithm=A":{}},"comm_type=inter":{"algorithm=B":{}}},"collective=ibarrier":{"algorithm=C":{}}}"#;
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
        let rules = tuning(5).mpich_rules(&library()).unwrap();
        let expected = r#"{"collective=allgather":{"comm_type=intra":{"comm_size<=4":{"algorithm=A":{}},"comm_size<=5":{"total_msg_size<=159":{"algorithm=MPIR_Allgather_intra_brucks":{}},"total_msg_size=any":{"algorithm=MPIR_Allgather_intra_ring":{}}},"comm_size=any":{"algorithm=A":{}}},"comm_type=inter":{"algorithm=B":{}}},
"collective=ibarrier":{"algorithm=C":{}}}
"#;
        assert_eq!(rules, expected);
    }

    #[test]
    fn what_has_no_rules_is_no_library_of_mpich() {
        for bytes in [&b""[..], b"\x7fELF", br#"{"collective=allgather":{}}"#, br#"{"collective=ibarrier":{"#]
        {
            assert_eq!(tuning(5).mpich_rules(bytes), None);
        }
    }
}
