"""What is deployed, checked without a cluster, a Docker engine or a cloud."""
