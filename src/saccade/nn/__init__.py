"""The pieces attention models are made of.

Shape letters, used as suffixes of tensor names everywhere:
B batch rows · M memories (source sentences) · S source or key positions · T target or query
positions · N heads · D width · H head width · V vocabulary. HWC together: height, width and channels of a picture.
"""
