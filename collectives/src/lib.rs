//! Schedules of collective algorithms as pure data.
