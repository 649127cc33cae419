"""The report of an experiment as one HTML file, with a page for each run."""
