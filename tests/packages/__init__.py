"""What a release publishes: built, looked into, installed into clean environments, and run on emulated processors."""
