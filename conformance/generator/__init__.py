"""What makes the conformance vectors: `wire` turns values into annotated bytes, `formulas` says what the values
of those bytes are, the other modules list the vectors."""
