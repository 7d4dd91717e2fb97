"""One file per engine that reads made-up tokens: `python -m bench.readers.NAME …` prints one line of JSON."""
