"""What runs use: counted, limited and kept in a ledger."""
