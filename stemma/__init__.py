"""Stemma's domain library: from files to a retrieval corpus that can be traced and trusted. Knows nothing of Dagster."""
