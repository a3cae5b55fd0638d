"""Options and names shared by declarations: parameters."""

from __future__ import annotations

from coder.cli.core.options import Options, option

PARAMETER_FILE: str = option(
    "",
    'YAML file with parameter values, one "name: value" a line.',
    env="CODER_RICH_PARAMETER_FILE",
)


class ParameterOptions(Options):
    """Values of a template's parameters."""

    yes: bool = False
    parameter: tuple[str, ...] = option(
        (),
        "Value of a parameter, like region=eu; may be repeated.",
        env="CODER_RICH_PARAMETER",
    )
    parameter_default: tuple[str, ...] = option(
        (),
        "Default value in prompts, name=value, instead of the template's default.",
        env="CODER_RICH_PARAMETER_DEFAULT",
    )
    rich_parameter_file: str = PARAMETER_FILE
    ephemeral_parameter: tuple[str, ...] = option(
        (),
        "Value of an ephemeral parameter, like clean=true; applies to this build only.",
        env="CODER_EPHEMERAL_PARAMETER",
    )
    prompt_ephemeral: bool = option(
        False,
        "Prompt for ephemeral parameters, which apply to one build only.",
        flag="prompt-ephemeral-parameters",
        env="CODER_PROMPT_EPHEMERAL_PARAMETERS",
    )
    use_defaults: bool = option(
        False,
        "Use the default of every parameter without a value, without prompts.",
        flag="use-parameter-defaults",
        env="CODER_WORKSPACE_USE_PARAMETER_DEFAULTS",
    )
    always_prompt: bool = option(
        False,
        "Prompt for every parameter, including those that have a value.",
    )
    build_option: tuple[str, ...] = option(
        (),
        env="CODER_BUILD_OPTION",
        hidden=True,
    )
    build_options: bool = option(
        False,
        hidden=True,
    )


class ParameterFileOption(Options):
    """The option `--rich-parameter-file`."""

    rich_parameter_file: str = PARAMETER_FILE
