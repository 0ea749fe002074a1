"""The gRPC server: another door to the gateway. Nothing outside this room imports grpc."""
