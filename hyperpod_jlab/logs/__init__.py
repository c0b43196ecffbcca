"""The log plane: reads what the ranks wrote, exactly once, however it is cut, moved or watched.

From the bottom up: `stream` names logs; `place` and `cursor` say where one stands in them; `source` is what every kind of log
can do, `bundle_file` the kind that lies in a bundle; `lines` and `block` turn bytes into lines without an object for each;
`merge` puts many streams in the order of time; `hub` reads what is being written, once for all who follow; `follow` is one
who follows; `pattern`, `matcher` and `search` find text.
"""
