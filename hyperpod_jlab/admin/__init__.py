"""For admins: what wires a file system of FSx to the people of a Studio domain. Planning is pure; AWS is changed by its executor only."""
