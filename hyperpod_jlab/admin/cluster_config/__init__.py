"""Checks of a HyperPod cluster's configuration: `document` reads the files, `facts` asks AWS, `checks` has the table of rules."""
