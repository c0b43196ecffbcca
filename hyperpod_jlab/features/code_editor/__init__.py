"""Tasks for Code Editor."""
