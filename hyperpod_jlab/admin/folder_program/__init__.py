"""A program that looks at folders of a file system, makes and deletes them; its modules import each other and the standard library only."""
