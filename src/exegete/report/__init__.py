"""Report: tell a person."""
