"""The stages of the corpus, one module per asset: take a run's open sources, do the work that is not done, record it, return what happened."""
