"""One file per engine that continues made-up tokens: `python -m bench.writers.NAME …` prints one line of JSON."""
