"""One file per engine: `python -m bench.engines.NAME BATCHES.pt --warmup 3 --steps 12` prints one line of JSON."""
