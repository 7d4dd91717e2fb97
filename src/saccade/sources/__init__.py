"""What a model reads: texts, pairs of texts, pictures, sounds, pictures with questions. Free of PyTorch."""
