"""Data and pure rules: spec, run, state, records, errors, clusters. No I/O."""
