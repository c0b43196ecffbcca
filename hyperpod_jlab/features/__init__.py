"""Insights and actions on top of clusters and runs, one folder each. Nothing else imports a feature by name."""
