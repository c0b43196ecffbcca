"""Why a run waits, and what would start now."""
