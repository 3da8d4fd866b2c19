"""Floor 1: models as shapes, operators with their FLOPs and bytes, and phase graphs.

Model spec + plan + phase -> operator graph. Nothing here knows a chip.
"""
