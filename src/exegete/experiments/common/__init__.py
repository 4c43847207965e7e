"""What experiments share: contracts, pooled rows, summaries."""
