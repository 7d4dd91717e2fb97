"""Search: written once, for every decoder that keeps the contract."""
