"""A model of rules for the tasks of this package: it answers only from what it is shown."""
