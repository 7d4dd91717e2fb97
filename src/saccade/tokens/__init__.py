"""Text <-> ids, on Hugging Face `tokenizers`."""
