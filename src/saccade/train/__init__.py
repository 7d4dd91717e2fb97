"""The training loop and its parts. The package can be called: `saccade.train(recipe, files, out=…)` trains a model and
returns it; `help(saccade.tasks.training.train)` tells all its options."""
