"""What becomes of runs: the queue, the accounting, the job's own output; and jobs that were sent elsewhere."""
