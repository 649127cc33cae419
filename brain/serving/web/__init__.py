"""A brain behind a web address. Needs the extra ``server``."""
