"""The labels of metrics that are measured on turns."""

from axon.domain.job import Job
from axon.domain.tenants.tenant import Tier


def turn_labels(job: Job) -> tuple[str, str, str]:
    """Model, version and class of a job; all three are bounded by what is deployed."""
    return job.deployment, job.version, Tier.of(job.priority)
