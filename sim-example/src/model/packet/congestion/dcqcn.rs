//! DCQCN (Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015).
//!
//! A switch marks a packet with a probability that grows from 0 at a queue of Kmin bytes to Pmax at Kmax, and is 1 above (RED). The
//! receiver of marked packets notifies their sender at most once in `cnp`. At a notification
//!
//! ```text
//! R_T ← R_C      R_C ← R_C·(1 − α/2)      α ← (1 − g)·α + g
//! ```
//!
//! and without one for `alpha`, α ← (1 − g)·α. The rate increases after each `timer` and each `bytes` sent; T and B count these since
//! the last notification. While both are below `F` (fast recovery) R_C ← (R_T + R_C)/2; then R_T ← R_T + AI before that, and with both
//! above `F`, R_T ← R_T + (min(T, B) − F + 1)·HAI.

use std::fmt;

use vef_format::units::{Bytes, Picos};

use super::parameters::{CongestionError, parameters, share, size, write_given};
use crate::quantity::{Bandwidth, exact_time, parse_time};

/// The slowest rate of a flow, in bits per second.
const SLOWEST: f64 = 10e6;
/// The least increase, in bits per second: with less, steps would be more than can be counted.
const LEAST: u64 = 1_000_000;
const SECOND: f64 = 1e12;

const fn rate(bits_per_second: u64) -> Bandwidth {
    match Bandwidth::from_bits_per_second(bits_per_second) {
        Some(rate) => rate,
        None => unreachable!(),
    }
}

/// Parameters; the defaults are the paper's (sections 5 and 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnSettings {
    /// Queue from which on packets are marked.
    pub k_min: Bytes,
    /// Queue above which all are.
    pub k_max: Bytes,
    /// Probability of a mark at `k_max`.
    pub p_max: f64,
    /// Weight of a notification in α.
    pub gain: f64,
    /// Additive increase.
    pub additive: Bandwidth,
    /// Hyper increase. The paper has no value: ten times the additive one, as in adapters.
    pub hyper: Bandwidth,
    /// Time between increases.
    pub timer: Picos,
    /// Bytes between increases.
    pub bytes: Bytes,
    /// Time after which α decreases.
    pub alpha: Picos,
    /// Least time between notifications.
    pub cnp: Picos,
    /// Increases of fast recovery.
    pub stages: u32,
}

impl DcqcnSettings {
    const DEFAULT: Self = Self {
        k_min: Bytes(5_000),
        k_max: Bytes(200_000),
        p_max: 0.01,
        gain: 1.0 / 256.0,
        additive: rate(40_000_000),
        hyper: rate(400_000_000),
        timer: Picos(55_000_000),
        bytes: Bytes(10_000_000),
        alpha: Picos(55_000_000),
        cnp: Picos(50_000_000),
        stages: 5,
    };

    pub(super) fn parse(text: &str) -> Result<Self, CongestionError> {
        let mut settings = Self::DEFAULT;
        let rate = |value: &str| match value.parse::<Bandwidth>() {
            Ok(rate) if rate.bits_per_second() < LEAST => Err("write at least 1Mbit/s".to_owned()),
            Ok(rate) => Ok(rate),
            Err(error) => Err(error.to_string()),
        };
        let time = |value: &str| match parse_time(value) {
            Ok(Picos(0)) => Err("must be greater than zero".to_owned()),
            Ok(time) => Ok(time),
            Err(error) => Err(error.to_string()),
        };
        let known = "write Kmin, Kmax, Pmax, g, AI, HAI, timer, bytes, alpha, cnp or F";
        parameters(text, |key, value| {
            match key {
                "Kmin" => settings.k_min = size(value)?,
                "Kmax" => settings.k_max = size(value)?,
                "Pmax" => settings.p_max = share(value)?,
                "g" => settings.gain = share(value)?,
                "AI" => settings.additive = rate(value)?,
                "HAI" => settings.hyper = rate(value)?,
                "timer" => settings.timer = time(value)?,
                "bytes" => settings.bytes = size(value)?,
                "alpha" => settings.alpha = time(value)?,
                "cnp" => settings.cnp = time(value)?,
                "F" => settings.stages = value.parse().map_err(|_| "write a whole number".to_owned())?,
                _ => return Err(known.to_owned()),
            }
            Ok(())
        })?;
        match settings.k_min < settings.k_max {
            true => Ok(settings),
            false => Err(CongestionError::Parameter {
                item: text.to_owned(),
                problem: "Kmin must be less than Kmax".to_owned(),
            }),
        }
    }

    /// The parameters as they are written.
    fn values(&self) -> [(&'static str, String); 11] {
        [
            ("Kmin", format!("{}B", self.k_min.0)),
            ("Kmax", format!("{}B", self.k_max.0)),
            ("Pmax", self.p_max.to_string()),
            ("g", self.gain.to_string()),
            ("AI", self.additive.to_string()),
            ("HAI", self.hyper.to_string()),
            ("timer", exact_time(self.timer)),
            ("bytes", format!("{}B", self.bytes.0)),
            ("alpha", exact_time(self.alpha)),
            ("cnp", exact_time(self.cnp)),
            ("F", self.stages.to_string()),
        ]
    }

    /// The probability with which a packet is marked that finds so many bytes in a queue.
    pub(in super::super) fn marked(&self, queue: u64) -> f64 {
        let (from, to) = (self.k_min.0 as f64, self.k_max.0 as f64);
        match queue as f64 {
            queue if queue > to => 1.0,
            queue => (self.p_max * (queue - from) / (to - from)).max(0.0),
        }
    }
}

impl fmt::Display for DcqcnSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.values().into_iter().zip(Self::DEFAULT.values());
        write_given(f, "dcqcn", own.filter(|(own, default)| own != default).map(|(own, _)| own))
    }
}

/// The rate of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dcqcn {
    /// Of the sender's link, in bits per second; no flow is faster.
    line: f64,
    target: f64,
    current: f64,
    alpha: f64,
    /// Whether a notification has come.
    limited: bool,
    /// When α decreases.
    alpha_at: Picos,
    /// When the timer expires.
    timer_at: Picos,
    timers: u32,
    counters: u32,
    /// Bytes sent since the last counter.
    bytes: u64,
    /// When the next packet may leave.
    pub(in super::super) next: Picos,
}

impl Dcqcn {
    pub(super) fn new(line: Bandwidth) -> Self {
        let line = line.bits_per_second() as f64;
        Self {
            line,
            target: line,
            current: line,
            alpha: 1.0,
            limited: false,
            alpha_at: Picos::ZERO,
            timer_at: Picos::ZERO,
            timers: 0,
            counters: 0,
            bytes: 0,
            next: Picos::ZERO,
        }
    }

    /// A notification.
    pub(in super::super) fn notified(&mut self, now: Picos, settings: &DcqcnSettings) {
        self.advance(now, settings);
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(SLOWEST.min(self.line));
        self.alpha += settings.gain * (1.0 - self.alpha);
        (self.timers, self.counters, self.bytes, self.limited) = (0, 0, 0, true);
        self.alpha_at = now.saturating_add(settings.alpha);
        self.timer_at = now.saturating_add(settings.timer);
    }

    /// A packet of `payload` bytes, `wire` with headers, leaves.
    pub(in super::super) fn sent(&mut self, now: Picos, payload: u64, wire: u64, settings: &DcqcnSettings) {
        self.advance(now, settings);
        let gap = 8.0 * wire as f64 / self.current * SECOND;
        self.next = now.saturating_add(Picos(gap as u64));
        if self.limited {
            self.bytes += payload;
            while self.bytes >= settings.bytes.0 {
                self.bytes -= settings.bytes.0;
                self.counters = self.counters.saturating_add(1);
                self.increase(settings);
            }
        }
    }

    /// Lets the timers expire that have until now.
    fn advance(&mut self, now: Picos, settings: &DcqcnSettings) {
        if !self.limited {
            return;
        }
        if self.alpha_at <= now {
            let times = (now.0 - self.alpha_at.0) / settings.alpha.0 + 1;
            self.alpha *= (1.0 - settings.gain).powf(times as f64);
            self.alpha_at = Picos(self.alpha_at.0 + times * settings.alpha.0);
        }
        while self.timer_at <= now {
            // At full speed there is nothing to increase.
            let is_full = self.current >= self.line * (1.0 - 1e-9);
            let times = if is_full { (now.0 - self.timer_at.0) / settings.timer.0 + 1 } else { 1 };
            self.timers = self.timers.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
            self.timer_at = Picos(self.timer_at.0 + times * settings.timer.0);
            self.increase(settings);
        }
    }

    fn increase(&mut self, settings: &DcqcnSettings) {
        let (least, most) = (self.timers.min(self.counters), self.timers.max(self.counters));
        if least > settings.stages {
            self.target += f64::from(least - settings.stages + 1) * settings.hyper.bits_per_second() as f64;
        } else if most >= settings.stages {
            self.target += settings.additive.bits_per_second() as f64;
        }
        self.target = self.target.min(self.line);
        self.current = (self.target + self.current) / 2.0;
    }
}
