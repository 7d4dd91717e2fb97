"""The page: runs of models with their looks as one record, a small server on loopback, and the same as one file."""
