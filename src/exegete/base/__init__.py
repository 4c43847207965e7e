"""What every room stands on: errors for people, names with settings, keyed noise, whole-file writes, progress."""
