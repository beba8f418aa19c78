"""Records: the domain, and the tools over stdio, beside the predecessor's."""
