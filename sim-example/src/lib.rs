//! An event-driven network simulator that replays VEF traces.
