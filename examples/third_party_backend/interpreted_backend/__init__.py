"""A backend that runs a traced graph op by op: what a package has to provide to add an export format."""

from transformers_exporters import Backend
from transformers_exporters.doors import Requirement

BACKEND = Backend(
    format="interpreted",
    extra="interpreted",
    config=f"{__name__}.config:InterpretedConfig",
    lower=f"{__name__}.lower:lower",
    save=f"{__name__}.lower:save",
    open=f"{__name__}.run:open_session",
    requires={"torch": Requirement(minimum="2.9", tested="2.13.0")},
    runs_on={"torch": Requirement(minimum="2.9", tested="2.13.0")},
)
