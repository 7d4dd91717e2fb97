"""What a training takes: operations, memory, devices, days, energy, money. Asked of `arch/` records; no PyTorch.

subject  what is planned: the tensors of a model and how often each is multiplied for one training text
compute  operations for each part
devices  peak, memory, links, power and price of devices, with sources
layout   how a model is divided among devices; wrong ways are refused with the numbers
memory   bytes on each device
steps    seconds of a step, communication included
choose   the least number of devices, the best layout
budget   the inverse questions: what so much money or time can train
plan     all of it for one model, as a record
text     the same in words, as tables and as a page
published  what papers measured, to be held against
"""
