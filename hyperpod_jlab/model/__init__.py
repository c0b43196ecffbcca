"""The words of the project: data and pure rules, no input or output.

Every other layer may import this one; it imports none of them.
"""
