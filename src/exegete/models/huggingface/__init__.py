"""Models of Hugging Face's transformers: words outside, pieces inside, every attention open."""
