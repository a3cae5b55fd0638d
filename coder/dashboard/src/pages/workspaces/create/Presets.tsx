// The presets of a template version, one of which may set parameters.
import { useEffect, useState } from "react";

import type { Preset } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Tag } from "../../../ui/Badge";
import { Section } from "../../../ui/Card";
import { RadioCards } from "../../../ui/forms/RadioCards";
import { initialValues, changedBy, presetValues, type InitialValues } from "./initial-values";

const NONE = "";

interface PresetsProps {
  version: string;
  presets: readonly Preset[] | null | undefined;
  chosen: Preset | null;
  /** The preset that the link requests. */
  name: string;
  own: Readonly<Record<string, string>>;
  /** Parameters fixed by the link. */
  locked: ReadonlySet<string>;
  skipped: InitialValues["skipped"];
  onChoose: (chosen: InitialValues) => void;
}

export function Presets({
  version,
  presets,
  chosen,
  name,
  own,
  locked,
  skipped: left,
  onChoose,
}: PresetsProps) {
  const [touched, setTouched] = useState("");
  useEffect(() => {
    if (!presets || touched === version) return;
    setTouched(version);
    onChoose(initialValues(presets, name, own));
  }, [presets, touched, version, name, own, onChoose]);
  if (!presets || presets.length === 0) return null;
  const press = (id: string) => {
    const preset = presets.find((item) => item.ID === id) ?? null;
    onChoose({ preset, values: preset ? presetValues(preset) : {}, skipped: null });
  };
  return (
    <Section
      title="Preset"
      description="Presets fill in several parameters at once. You can still change other parameters."
    >
      <RadioCards
        label="Preset"
        columns
        value={chosen?.ID ?? NONE}
        onChange={press}
        options={[
          { value: NONE, text: "None", hint: "Set all parameters yourself." },
          ...presets.map((item) => {
            const conflicting = changedBy(item, own).filter((parameter) => locked.has(parameter));
            return {
              value: item.ID,
              text: (
                <>
                  {item.Name} {item.Default ? <Tag>Default</Tag> : null}{" "}
                  {(item.DesiredPrebuildInstances ?? 0) > 0 ? (
                    <Tag
                      tone="good"
                      title="This preset has prebuilt workspaces, so yours starts faster."
                    >
                      Prebuilt
                    </Tag>
                  ) : null}
                </>
              ),
              hint:
                conflicting.length > 0
                  ? `It would change ${conflicting.join(", ")}, which the link you opened has set.`
                  : item.Description,
              disabled: conflicting.length > 0,
              icon: item.Icon ? (
                <Avatar name={item.Name} src={item.Icon} size="sm" square />
              ) : undefined,
            };
          }),
        ]}
      />
      {left ? (
        <p role="status" className="mt-2 text-sm text-muted">
          {left.preset.Name} was not applied: it would change {left.changes.join(", ")}.
        </p>
      ) : null}
    </Section>
  );
}
