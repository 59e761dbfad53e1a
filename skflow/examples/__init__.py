"""Programs that run as they stand: ``python -m skflow.examples.quickstart``."""
