"""AG-UI: the protocol between agents and user interfaces. Needs the extra ``ag-ui``."""
