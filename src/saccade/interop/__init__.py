"""Models other programs wrote, read into plain arrays and tokenizers; what a model then does with them is elsewhere."""
