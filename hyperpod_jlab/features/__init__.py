"""Insights and actions on top of clusters and runs, a folder each. Nothing else imports a feature by name."""
