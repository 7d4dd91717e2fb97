"""Whole models on two contracts: an encoder reads X into a memory, a decoder writes Y and looks back at it."""
