"""The kinds of objects that a run can be."""
