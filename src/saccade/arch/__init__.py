"""What a model is, as plain records: blocks, stacks, encoders, decoders, heads. Light: no PyTorch, no arrays.

Every record lists its tensors once (`weights`), by name and shape and by what they are multiplied with. From that list
come parameter counts, FLOPs and the check of a model folder; `models/` builds PyTorch modules of the same names, and
`runtime/` runs the same names without PyTorch.
"""
