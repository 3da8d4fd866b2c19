"""Floor 6: figures, tables and records of results; no physics."""
