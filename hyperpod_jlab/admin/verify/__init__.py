"""Facts about AWS that cannot be checked without an account, and their check on one (``hpj admin verify-aws``)."""
