//! Names of spans, events and metrics.
