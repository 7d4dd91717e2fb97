"""Files -> examples -> batches. Data gives records; it does not know models."""
