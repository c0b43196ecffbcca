"""The Jupyter Server extension: HTTP in, services out. The only package that imports Jupyter."""
