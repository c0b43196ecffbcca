"""The storage partition: paths and their translation, bundles, records, the content store and the index."""
