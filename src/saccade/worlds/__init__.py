"""Worlds in which something acts: what is seen and told, what an action changes. They know no model."""
