"""What-if questions: cuts of a chip, comparisons of two runs, and the store of results."""
