"""The dashboards, one file each."""

from axon.monitoring.boards import data, engine, models, overview, queue, streams, tenants
from axon.monitoring.dashboard import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (
    overview.DASHBOARD,
    engine.DASHBOARD,
    queue.DASHBOARD,
    streams.DASHBOARD,
    tenants.DASHBOARD,
    models.DASHBOARD,
    data.DASHBOARD,
)
