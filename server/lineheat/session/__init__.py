"""Sessions: who starts a target, where its figures live, and how they are found again."""
