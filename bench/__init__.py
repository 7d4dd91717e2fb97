"""How fast Saccade is beside its peers, each measured in its own process, in one run. Not part of the package."""
