// Props and options shared by the parameter controls.
import { type ReactNode } from "react";

import type { PreviewParameter, PreviewParameterOption } from "../../api/types";
import { Avatar } from "../../ui/Avatar";

export interface ControlProps {
  parameter: PreviewParameter;
  value: string;
  onChange: (value: string) => void;
  disabled: boolean;
  /** Why the value is not accepted. */
  problem: string | undefined;
  tags: ReactNode;
}

export function optionIcon(option: PreviewParameterOption): ReactNode {
  return option.icon ? <Avatar name={option.name} src={option.icon} size="xs" square /> : undefined;
}

export function choices(parameter: PreviewParameter) {
  return parameter.options.map((option) => ({
    value: option.value.value,
    text: option.name,
    hint: option.description || undefined,
    icon: optionIcon(option),
  }));
}

export type ListProps = Omit<ControlProps, "tags" | "parameter"> & {
  label: ReactNode;
  name: string;
  hint: ReactNode;
};
