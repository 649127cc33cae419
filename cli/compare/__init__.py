"""The command ``compare``: an experiment from a TOML file."""
