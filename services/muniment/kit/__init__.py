"""What every service is made of. It knows no service and no domain."""
