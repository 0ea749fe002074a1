"""Gets a model's files from a folder, a hub or a bucket, and keeps them by digest. Runs no model and serves no HTTP."""
