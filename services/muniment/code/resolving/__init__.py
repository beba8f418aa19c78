"""What a name means: from the facts of all files to edges between definitions.

`files` holds a file's facts so that they can be looked up, `tree` all files; `modules` says which
file an import means, `names` what a name means in a scope, `values` what a chain of names comes
to, and `edges` makes a file's edges of it. Whatever is read of another file is noted, so that a
change resolves only those anew that read what changed.
"""
