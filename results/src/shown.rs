//! Numbers and foreign text as people read them.

use vef_format::units::{Bytes, Grouped, Picos};

/// A number of things, in groups of three digits.
pub fn count(value: impl Into<u128>) -> String {
    Grouped(value.into()).to_string()
}

/// An amount of data, with a unit that fits.
pub fn bytes(bytes: impl Into<u128>) -> String {
    let bytes = bytes.into();
    let of_large = |_| format!("{} EB", count(bytes / 1_000_000_000_000_000_000));
    u64::try_from(bytes).map_or_else(of_large, |bytes| Bytes(bytes).to_string())
}

/// A time in picoseconds, with a unit that fits.
pub fn time(picos: impl Into<u128>) -> String {
    let picos = picos.into();
    let of_large = |_| format!("{} s", count(picos / 1_000_000_000_000));
    u64::try_from(picos).map_or_else(of_large, |picos| Picos(picos).to_string())
}

/// A bandwidth, in the largest decimal unit that gives a whole number: `12500Mbit/s`.
pub fn rate(bits_per_second: u64) -> String {
    let (mut value, mut prefix) = (bits_per_second, "");
    for larger in ["k", "M", "G", "T"] {
        if !value.is_multiple_of(1000) {
            break;
        }
        (value, prefix) = (value / 1000, larger);
    }
    format!("{value}{prefix}bit/s")
}

/// A share with one decimal; below one per cent with two digits, and with as many decimals where only all would be 100 %.
pub fn percent(share: f64) -> String {
    let decimals = |rest: f64| (-1.0 - rest.log10().floor()).min(6.0) as usize;
    let (percent, decimals) = match share {
        0.0 => (0.0, 1),
        0.0..0.01 => (100.0 * share, decimals(share)),
        0.9995..1.0 => ((100.0 * share).min(99.999_999), decimals(1.0 - share)),
        _ => (100.0 * share, 1),
    };
    format!("{percent:.decimals$} %")
}

/// A change as a share with a sign and one decimal; none of 0.0.
pub fn signed_percent(share: f64) -> String {
    match (1000.0 * share).round() / 10.0 {
        0.0 => "0.0 %".into(),
        percent => format!("{percent:+.1} %"),
    }
}

/// A number, or a range of numbers.
pub fn range(from: impl Into<u128>, to: impl Into<u128>) -> String {
    let (from, to) = (from.into(), to.into());
    if from == to { count(from) } else { format!("{} … {}", count(from), count(to)) }
}

#[cfg(test)]
mod tests {
    use super::{percent, signed_percent};

    #[test]
    fn no_change_has_no_minus() {
        assert_eq!([-0.0004, 0.0, -0.0006].map(signed_percent), ["0.0 %", "0.0 %", "-0.1 %"]);
    }

    #[test]
    fn small_shares_keep_two_digits_and_only_all_is_100() {
        let shares = [0.0, 1.0, 0.4329, 0.01, 0.0094, 0.00043, 1e-12];
        assert_eq!(
            shares.map(percent),
            ["0.0 %", "100.0 %", "43.3 %", "1.0 %", "0.94 %", "0.043 %", "0.000000 %"]
        );
        let nearly_all = [0.9994, 0.9995, 0.99964, 0.999_999_5, 1.0 - 1e-12, 1.0_f64.next_down(), 1.5];
        assert_eq!(
            nearly_all.map(percent),
            ["99.9 %", "99.950 %", "99.964 %", "99.999950 %", "99.999999 %", "99.999999 %", "150.0 %"]
        );
    }
}
