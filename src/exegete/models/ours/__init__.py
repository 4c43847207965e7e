"""Our own models: trained here, every layer known."""
