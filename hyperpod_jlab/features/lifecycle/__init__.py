"""The state of this space's lifecycle configuration."""
