"""Papers: published numbers beside ours."""
