"""Stock and prices for a ship chandlery."""
