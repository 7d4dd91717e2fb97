"""Where a model looked: plain records, and pictures of them. A picture takes a record, never a model."""
