"""The log plane: reads the ranks' output exactly once, even if files are cut or moved while they are read.

From the bottom up: `stream` names logs and positions in them, and `cursor` combines positions;
`source` is the interface of every kind of log, `bundle_file` the kind in a bundle; `lines` turns
bytes into lines without an object for each; `history` merges many streams by time; `reader` reads
what is being written, once for all followers; `follow` is the follower; `array` combines the logs
of an array's children; `pattern` and `search` find text.
"""
