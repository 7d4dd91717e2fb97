"""A loaded model that answers: texts in, answers out. No training, and no PyTorch."""
