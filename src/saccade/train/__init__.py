"""Training: one loop that knows no task, and what it needs to be fast, resumable and honest."""
