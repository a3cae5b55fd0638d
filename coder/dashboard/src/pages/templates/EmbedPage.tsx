// A README button that opens the new-workspace form with prefilled values.
import { useState } from "react";

import { useMe } from "../../features/session/useMe";
import type { TemplateVersion, Template } from "../../api/types";
import { Section } from "../../ui/Card";
import { CodeBox } from "../../ui/text/CodeBox";
import { RadioCards } from "../../ui/forms/RadioCards";
import { Switch } from "../../ui/forms/Toggle";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { useDynamicParameters } from "../../features/parameter/dynamic-parameters";
import { ParameterField } from "../../features/parameter/ParameterField";
import { templatePath } from "../../features/template/paths";
import { useTemplateContext } from "./TemplateLayout";

export function embedLink(
  origin: string,
  template: Template,
  options: { auto: boolean; name: string; values: Readonly<Record<string, string>> },
): string {
  const query = new URLSearchParams({ mode: options.auto ? "auto" : "manual" });
  if (options.name) query.set("name", options.name);
  for (const [name, value] of Object.entries(options.values)) query.set(`param.${name}`, value);
  return `${origin}${templatePath(template)}/workspace?${query.toString()}`;
}

export function EmbedPage() {
  const { template, version } = useTemplateContext();
  useTitle(template.name);
  return <Embed key={version.id} template={template} version={version} />;
}

function Embed({ template, version }: { template: Template; version: TemplateVersion }) {
  const me = useMe();
  const dynamic = useDynamicParameters(version.id, me.id, {});
  const [mode, setMode] = useState("manual");
  const [name, setName] = useState("");
  const [included, setIncluded] = useState<ReadonlySet<string>>(new Set());
  const values = Object.fromEntries(
    (dynamic.parameters ?? [])
      .filter((parameter) => included.has(parameter.name))
      .map((parameter) => [parameter.name, dynamic.valueOf(parameter)]),
  );
  const link = embedLink(window.location.origin, template, { auto: mode === "auto", name, values });
  const toggle = (parameter: string, on: boolean) =>
    setIncluded((old) => {
      const next = new Set(old);
      if (on) next.add(parameter);
      else next.delete(parameter);
      return next;
    });
  return (
    <div className="grid grid-cols-2 items-start gap-6 max-lg:grid-cols-1">
      <Stack>
        <Section title="Options">
          <Stack>
            <RadioCards
              label="Creation mode"
              value={mode}
              onChange={setMode}
              options={[
                {
                  value: "manual",
                  text: "Manual",
                  hint: "Opens the form with the values below.",
                },
                {
                  value: "auto",
                  text: "Automatic",
                  hint: "Creates the workspace after a confirmation.",
                },
              ]}
            />
            <TextField
              label="Workspace name"
              hint="Leave empty to let the user choose a name."
              value={name}
              onChange={setName}
              autoComplete="off"
            />
          </Stack>
        </Section>
        {dynamic.parameters === null ? (
          <SkeletonRows rows={2} />
        ) : dynamic.parameters.length > 0 ? (
          <Section title="Parameters" description="Included parameters are prefilled.">
            <Stack className="gap-6">
              {dynamic.parameters.map((parameter) => (
                <div key={parameter.name} className="flex flex-col gap-2">
                  <Switch
                    label={`Include ${parameter.display_name || parameter.name}`}
                    checked={included.has(parameter.name)}
                    onChange={(on) => toggle(parameter.name, on)}
                  />
                  {included.has(parameter.name) ? (
                    <ParameterField
                      parameter={parameter}
                      value={dynamic.valueOf(parameter)}
                      onChange={(value) => dynamic.choose({ [parameter.name]: value })}
                    />
                  ) : null}
                </div>
              ))}
            </Stack>
          </Section>
        ) : null}
      </Stack>
      <Section title="Preview">
        <Stack>
          <a
            href={link}
            className="inline-flex self-start rounded-md bg-accent px-3 py-2 font-medium text-on-accent"
          >
            Open in Coder
          </a>
          <div>
            <h3 className="mb-1 text-sm font-medium">Markdown</h3>
            <CodeBox
              label="Markdown"
              command={`[![Open in Coder](${window.location.origin}/open-in-coder.svg)](${link})`}
            />
          </div>
          <div>
            <h3 className="mb-1 text-sm font-medium">HTML</h3>
            <CodeBox
              label="HTML"
              command={
                `<a href="${link.replaceAll("&", "&amp;")}"><img ` +
                `src="${window.location.origin}/open-in-coder.svg" alt="Open in Coder" /></a>`
              }
            />
          </div>
          <div>
            <h3 className="mb-1 text-sm font-medium">Link</h3>
            <CodeBox label="Link" command={link} />
          </div>
        </Stack>
      </Section>
    </div>
  );
}
