"""``hpj doctor``: the way of a run from this machine to a node and back, looked at step by step."""
