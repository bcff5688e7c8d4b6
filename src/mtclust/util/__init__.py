"""What every room may use: messages to users, and what the machine gives."""
