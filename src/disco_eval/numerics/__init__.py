"""Arrays in, arrays out: the numeric layer knows no ids and imports nothing above it."""
