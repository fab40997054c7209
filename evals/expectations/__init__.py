"""What is expected of each layer of the corpus, as suites of Great Expectations: one module per asset."""
