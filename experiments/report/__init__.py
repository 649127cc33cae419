"""The report of an experiment: figures, comparisons, Markdown and HTML."""
