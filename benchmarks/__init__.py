"""Speed figures of chipsim: ``python -m benchmarks`` prints one table.

Nothing here is a test: a figure is judged by whoever reads the table, on their machine.
"""
