"""PyTorch: `torch.export` programs and AOTInductor packages."""

from ...doors import Backend, Requirement

BACKEND = Backend(
    format="dynamo",
    extra="all",
    config="transformers_exporters.backends.dynamo.config:DynamoConfig",
    lower="transformers_exporters.backends.dynamo.lower:lower",
    save="transformers_exporters.backends.dynamo.lower:save",
    open="transformers_exporters.backends.dynamo.run:open_session",
    requires={"torch": Requirement(minimum="2.9", tested="2.13.0")},
    runs_on={"torch": Requirement(minimum="2.9", tested="2.13.0")},
    patches=f"{__name__}.patches",
    normal_form=False,
    experts="grouped_mm",
)
