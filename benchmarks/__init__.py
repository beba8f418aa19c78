"""What the house can do, measured; each number with the machine, the data and the commit."""
