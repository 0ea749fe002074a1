"""What a worker process and its engine process say to each other, and how it is written as bytes. Imports no torch."""
