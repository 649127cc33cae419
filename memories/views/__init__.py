"""What of a log a model is shown: windows, the recent end, summaries."""
