"""Named sizes: every row of the lectures' scaling table and its relatives, true to their papers, counted exactly.

`saccade show PRESET` prints a card, `saccade plan PRESET` what it takes to train it, and `saccade train PRESET FILES`
trains one, made smaller with --set.
"""
