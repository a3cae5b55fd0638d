// The presets of a template version, one of which may set parameters.
import { useEffect, useState } from "react";

import type { Preset } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Tag } from "../../../ui/Badge";
import { Section } from "../../../ui/Card";
import { RadioCards } from "../../../ui/forms/RadioCards";
import { beginning, changedBy, presetValues, type Beginning } from "./begin";

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
  left: Beginning["left"];
  onChoose: (chosen: Beginning) => void;
}

export function Presets({
  version,
  presets,
  chosen,
  name,
  own,
  locked,
  left,
  onChoose,
}: PresetsProps) {
  const [touched, setTouched] = useState("");
  useEffect(() => {
    if (!presets || touched === version) return;
    setTouched(version);
    onChoose(beginning(presets, name, own));
  }, [presets, touched, version, name, own, onChoose]);
  if (!presets || presets.length === 0) return null;
  const press = (id: string) => {
    const preset = presets.find((item) => item.ID === id) ?? null;
    onChoose({ preset, values: preset ? presetValues(preset) : {}, left: null });
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
            const against = changedBy(item, own).filter((parameter) => locked.has(parameter));
            return {
              value: item.ID,
              text: (
                <>
                  {item.Name} {item.Default ? <Tag>Default</Tag> : null}{" "}
                  {(item.DesiredPrebuildInstances ?? 0) > 0 ? (
                    <Tag tone="good" title="Prebuilt workspaces are available: it starts at once.">
                      Prebuilt
                    </Tag>
                  ) : null}
                </>
              ),
              hint:
                against.length > 0
                  ? `It would change ${against.join(", ")}, which the link you opened has set.`
                  : item.Description,
              disabled: against.length > 0,
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
