"""What runs on the far side: copied into bundles as files, stdlib only, Python 3.8 and newer."""
