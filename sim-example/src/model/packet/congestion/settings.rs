//! Congestion controls by name.

use std::fmt;
use std::str::FromStr;

use vef_format::units::Bytes;

use super::dcqcn::DcqcnSettings;
use super::dctcp::DctcpSettings;
pub use super::parameters::CongestionError;
use super::parameters::size;
use crate::quantity::Bandwidth;

/// How senders react to congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Congestion {
    /// A window that shrinks with the share of marked packets.
    Dctcp(DctcpSettings),
    /// A rate that notifications of marked packets reduce.
    Dcqcn(DcqcnSettings),
    /// A fixed window.
    Window(Window),
    /// Credits of the receiver.
    Credits {
        /// Bytes that a sender without messages under way may send without credits.
        unsolicited: Bytes,
    },
}

/// Most bytes of a pair of nodes that are sent and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// So many.
    Bytes(Bytes),
    /// As many as an idle network needs for the full bandwidth of the sender's link.
    Bdp,
}

impl FromStr for Congestion {
    type Err = CongestionError;

    fn from_str(text: &str) -> Result<Self, CongestionError> {
        let (name, rest) = match text.split_once(':') {
            Some((_, "")) => return Err(CongestionError::Unknown),
            Some(both) => both,
            None => (text, ""),
        };
        let sized = || {
            let wrong = |problem| CongestionError::Parameter { item: text.to_owned(), problem };
            size(rest).map_err(wrong)
        };
        match name {
            "dctcp" => DctcpSettings::parse(rest).map(Self::Dctcp),
            "dcqcn" => DcqcnSettings::parse(rest).map(Self::Dcqcn),
            "window" if rest == "bdp" => Ok(Self::Window(Window::Bdp)),
            "window" if !rest.is_empty() => Ok(Self::Window(Window::Bytes(sized()?))),
            "credits" if rest.is_empty() => Ok(Self::Credits { unsolicited: Bytes::ZERO }),
            "credits" => Ok(Self::Credits { unsolicited: sized()? }),
            _ => Err(CongestionError::Unknown),
        }
    }
}

impl fmt::Display for Congestion {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dctcp(settings) => settings.fmt(f),
            Self::Dcqcn(settings) => settings.fmt(f),
            Self::Window(Window::Bdp) => f.write_str("window:bdp"),
            Self::Window(Window::Bytes(size)) => write!(f, "window:{}B", size.0),
            Self::Credits { unsolicited: Bytes(0) } => f.write_str("credits"),
            Self::Credits { unsolicited } => write!(f, "credits:{}B", unsolicited.0),
        }
    }
}

impl Congestion {
    /// Whether switches mark packets.
    pub(crate) fn marks(&self) -> bool {
        match self {
            Self::Dctcp(_) | Self::Dcqcn(_) => true,
            Self::Window(_) | Self::Credits { .. } => false,
        }
    }

    /// The queue of a link in bytes above which switches mark packets, if they do.
    pub(crate) fn marks_above(&self, bandwidth: Bandwidth) -> Option<u64> {
        match self {
            Self::Dctcp(settings) => Some(settings.threshold(bandwidth)),
            Self::Dcqcn(settings) => Some(settings.k_min.0),
            Self::Window(_) | Self::Credits { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_read_back() {
        for text in [
            "dctcp",
            "dctcp:K=30000B",
            "dctcp:K=97500B,g=0.125",
            "dcqcn",
            "dcqcn:Kmin=1000B,Pmax=0.1,AI=100Mbit/s,timer=300us",
            "window:bdp",
            "window:65536B",
            "credits",
            "credits:4096B",
        ] {
            assert_eq!(text.parse::<Congestion>().unwrap().to_string(), text);
        }
        for (text, problem) in [
            ("", "write none, dctcp"),
            ("tcp", "write none, dctcp"),
            ("window", "write none, dctcp"),
            ("window:", "write none, dctcp"),
            ("window:0", "greater than zero"),
            ("credits:", "write none, dctcp"),
            ("dctcp:", "write none, dctcp"),
            ("dctcp:K=97kB,K=98kB", "\"K=98kB\": K is given twice"),
            ("dcqcn:AI=1G,timer=1us,AI=1G", "\"AI=1G\": AI is given twice"),
            ("window:64", ""),
            ("credits:x", "expected a decimal number"),
            ("dctcp:K", "write KEY=VALUE"),
            ("dctcp:k=5kB", "\"k=5kB\": write K or g"),
            ("dctcp:g=2", "above 0 and up to 1"),
            ("dcqcn:Kmin=9kB,Kmax=8kB", "Kmin must be less than Kmax"),
            ("dcqcn:AI=0G", "\"AI=0G\": must be greater than zero"),
            ("dcqcn:timer=0us", "must be greater than zero"),
        ] {
            match text.parse::<Congestion>() {
                Ok(_) => assert_eq!(problem, "", "{text}"),
                Err(error) => assert!(error.to_string().contains(problem), "{text}: {error}"),
            }
        }
    }
}
