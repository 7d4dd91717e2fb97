"""Writing: sessions whose rows join, step and leave, for every decoder that keeps the runtime's contract.

K is a beam's width, C its candidates, M the texts that have beams. Other shape letters as in `nn/`.
"""
