"""A whole zone lost at once: half of the fleet, and every service's primary with it."""

from tests.faults.fault import Fault, Scene
from tests.faults.fleet import Process, state_of
from tests.services.process import listening


def lost(scene: Scene) -> None:
    """A zone is lost: a gateway, a worker, a control, the RabbitMQ node that all talk to, and both primaries."""
    stage, fleet = scene.stage, scene.fleet
    victims: list[Process] = [fleet.gateways[0], fleet.workers[0], fleet.controls[0]]
    rabbit, *rabbits = stage.rabbits
    redis, postgres = stage.redis, stage.postgres
    scene.work.wait_for_running(scene.work.num_clients // 2)
    scene.strike()
    for victim in victims:
        victim.kill()
    for server in (rabbit, redis, postgres):
        server.kill()
    scene.prove(all(state_of(each.pid) == "X" for each in victims), "half of the fleet is gone")
    scene.prove(not any(listening(each.port) for each in (rabbit, redis, postgres)), "and so are three primaries")
    _take_over(scene)
    scene.prove(not listening(redis.port), "the other zone has the services")
    scene.wait(lambda: any(each.metric("axon_leads") for each in fleet.controls if each.alive), "its control leads")
    scene.work.wait_for_ended(scene.work.num_clients // 2, asked_after=scene.work.now)
    rabbit.start()
    scene.wait(lambda: rabbit.name in stage.cluster.running(rabbits[0]), "the node has joined again", 60.0)
    stage.rabbits = [*rabbits, rabbit]
    fleet.start(*victims)


def _take_over(scene: Scene) -> None:
    """What a managed service does: a replica is promoted, and its name leads there."""
    stage, place = scene.stage, scene.place
    place.rabbit = stage.rabbits[1]
    stage.rabbit_way.switch(place.rabbit.port)
    stage.replica.promote()
    stage.redis_way.switch(stage.replica.port)
    place.live_port = stage.replica.port
    stage.redis = stage.replica
    old = stage.postgres.port
    stage.standby.promote()
    stage.postgres_way.switch(stage.standby.port)
    place.store_url = place.store_url.replace(f":{old}/", f":{stage.standby.port}/")
    stage.postgres = stage.standby


FAULTS = [Fault(name="a zone lost", happen=lost, stage="zones", forgets=True, goal_s=10.0, tested="one of ten")]
