"""The pages for people: signing in, the chat and the console, and the files they are made of."""
