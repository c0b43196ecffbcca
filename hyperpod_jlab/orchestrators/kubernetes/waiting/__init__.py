"""Why a run waits."""
