"""The shape of a model for sizing: one that is known by its name, or a folder's own. Loads no weights."""

from pathlib import Path

from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import Misconfigured


def shape_of(model: str) -> Shape:
    """The shape of a known name or of a folder with a config.json; raises ``Misconfigured`` for neither."""
    if (known := KNOWN.get(model.lower())) is not None:
        return known
    folder = Path(model).expanduser()
    if not (folder / "config.json").is_file():
        raise Misconfigured(
            f"--model {model}: it is neither a folder with a config.json nor a known shape ({', '.join(KNOWN)})."
        )
    from axon.engine.load.architecture import read_architecture

    found = read_architecture(folder)
    return Shape(
        name=folder.absolute().name,
        num_parameters=found.num_parameters(),
        num_idle_parameters=found.num_idle_parameters(),
        num_layers=found.num_layers,
        num_heads=found.num_heads,
        num_kv_heads=found.num_kv_heads,
        head_dim=found.head_dim,
        max_context=found.max_model_len,
    )
