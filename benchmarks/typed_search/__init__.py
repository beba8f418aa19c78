"""Measures typed search: wrong answers and wrong abstentions, beside a peer."""
