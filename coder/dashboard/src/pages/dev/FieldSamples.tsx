// All kinds of fields.
import { useState } from "react";

import { Section } from "../../ui/Card";
import { Combobox } from "../../ui/forms/Combobox";
import { SelectField, TextArea, TextField } from "../../ui/forms/Field";
import { RadioCards } from "../../ui/forms/RadioCards";
import { Checkbox, Switch } from "../../ui/forms/Toggle";
import { Stack } from "../../ui/Page";
import { MANY } from "./samples";

interface FieldSamplesProps {
  text: string;
  onText: (text: string) => void;
}

export function FieldSamples({ text, onText }: FieldSamplesProps) {
  const [on, setOn] = useState(true);
  const [choice, setChoice] = useState("a");
  return (
    <Section title="Fields">
      <Stack className="max-w-xl">
        <TextField
          label="Name"
          hint="Letters, digits and hyphens."
          value={text}
          onChange={onText}
          required
        />
        <TextField
          label="Wrong"
          value="x y"
          problem="No spaces are allowed."
          onChange={() => undefined}
        />
        <TextField label="Disabled" value="cannot be changed" disabled onChange={() => undefined} />
        <TextArea label="Description" value={text} onChange={onText} />
        <SelectField
          label="One of few"
          value={choice}
          onChange={setChoice}
          options={[
            ["a", "First"],
            ["b", "Second"],
          ]}
        />
        <Combobox label="One of 5,000" value={choice} onChange={setChoice} options={MANY} />
        <Checkbox label="Remember" hint="For a month." checked={on} onChange={setOn} />
        <Switch label="Notify" hint="By mail." checked={on} onChange={setOn} />
        <RadioCards
          label="Size"
          value={choice}
          onChange={setChoice}
          options={[
            { value: "a", text: "Small", hint: "2 cores" },
            { value: "b", text: "Large", hint: "8 cores" },
          ]}
        />
      </Stack>
    </Section>
  );
}
