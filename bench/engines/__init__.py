"""One file per engine that trains: `python -m bench.engines.NAME BATCHES.pt --warmup 3 --steps 12` prints JSON.

JoeyNMT is given the folder instead, with the corpus as lines, since it makes its own batches.
"""
