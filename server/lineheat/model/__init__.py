"""What a profile is: values and tables.  Imports nothing of ours and knows no language."""
