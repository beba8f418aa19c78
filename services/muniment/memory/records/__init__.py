"""Records: entities, state, reference documents, journal and archive, a store per tenant."""
