"""Chooses the source of a location. The only file that names them all; each is imported when it is needed."""

from axon.weights.source import Bucket, HubRepo, LocalPath, Location, Source


def open_source(location: Location, *, revision: str = "", timeout_s: float = 30.0) -> Source:
    """The source of a location; ``revision`` pins the one that it had when it was registered."""
    match location:
        case LocalPath():
            from axon.weights.folder import FolderSource

            return FolderSource(location)
        case HubRepo():
            from axon.weights.hub import HubSource

            return HubSource(location, revision=revision, timeout_s=timeout_s)
        case Bucket():
            from axon.weights.bucket import BucketSource

            return BucketSource(location, timeout_s=timeout_s)
