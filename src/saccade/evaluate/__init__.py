"""How good it is: metrics as pure functions of outputs and references."""
