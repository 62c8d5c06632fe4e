//! Feeds a VEF trace to any network simulator.
