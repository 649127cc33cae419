"""What journals in SQL databases share: tables, statements, paging, leases."""
