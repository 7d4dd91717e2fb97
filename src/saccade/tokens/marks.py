"""The ids that are no text: padding, and where a text begins and ends."""

PAD, BEGIN, END = 0, 1, 2
SPECIALS = ["<pad>", "<s>", "</s>"]
