"""The table of methods has every method of every service, and no other."""

from google.protobuf.descriptor import FileDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from axon.gateway.grpc.methods import SERVICES, make_methods
from axon.oip import inference_pb2
from axon.v1 import axon_pb2


def declared(file: FileDescriptor) -> set[str]:
    return {
        f"/{service.full_name}/{method.name}"
        for service in file.services_by_name.values()
        for method in service.methods
    }


def test_every_method_that_a_proto_declares_is_served() -> None:
    files = (axon_pb2, inference_pb2, health_pb2, reflection_pb2)
    found = set().union(*(declared(each.DESCRIPTOR) for each in files))
    newer = {path.replace("v1alpha", "v1") for path in found if "reflection" in path}
    assert set(make_methods()) == found | newer
    assert {path.split("/")[1] for path in make_methods()} == SERVICES


def test_only_probes_need_no_key() -> None:
    assert {path.rpartition("/")[2] for path, each in make_methods().items() if not each.needed} == {
        "Check",
        "List",
        "Watch",
        "ServerLive",
        "ServerReady",
    }
