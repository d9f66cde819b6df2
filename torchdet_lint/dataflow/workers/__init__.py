"""What a DataLoader hands its workers -> the generators that are copied to them, and what is drawn there."""
