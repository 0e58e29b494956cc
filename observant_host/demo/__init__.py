"""The sample servers that `observant-host demo` starts, and the story it tells with them."""
