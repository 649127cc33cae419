"""Diagrams of nets: Mermaid, Graphviz and SVG."""
