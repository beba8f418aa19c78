"""The slots service: llama-servers as they are found, exact token counts, saved slots."""
