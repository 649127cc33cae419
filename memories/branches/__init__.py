"""The branches of a run: in RAM, in the journal, their counts, and forgetting in them."""
