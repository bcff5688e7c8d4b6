"""What every package may use: messages to users, and what the machine gives."""
