"""Checks of a HyperPod cluster's configuration: `document` reads the files, `facts` asks AWS, `rules` has the table, `changes` compares with a cluster."""
