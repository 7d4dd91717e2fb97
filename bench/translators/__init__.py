"""One file per engine that translates made-up tokens: `python -m bench.translators.NAME …` prints one line of JSON."""
