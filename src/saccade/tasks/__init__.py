"""One file per task: how its examples are read, what is minimised, searched, measured and shown.

A new task is one file here, a recipe, and a row in `table.py`.
"""
