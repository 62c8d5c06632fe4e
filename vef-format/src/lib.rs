//! Records, readers and writers of VEF traces and of captures.
