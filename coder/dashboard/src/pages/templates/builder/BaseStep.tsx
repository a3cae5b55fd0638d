// The first step of the template builder: the base, and what it needs.
import { lazy, Suspense } from "react";

import type { TemplateBuilderBase } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Section } from "../../../ui/Card";
import { RadioCards } from "../../../ui/forms/RadioCards";
import { Skeleton } from "../../../ui/Loading";
import { Stack } from "../../../ui/Page";

const Markdown = lazy(() => import("../../../ui/text/Markdown"));

export function BaseStep({
  bases,
  base,
  onChange,
}: {
  bases: readonly TemplateBuilderBase[];
  base: TemplateBuilderBase;
  onChange: (id: string) => void;
}) {
  return (
    <Stack>
      <RadioCards
        label="Base"
        hint="The base says where workspaces run."
        columns
        value={base.id}
        onChange={onChange}
        options={bases.map((item) => ({
          value: item.id,
          text: item.name,
          hint: item.description,
          icon: <Avatar name={item.name} src={item.icon} size="sm" square />,
        }))}
      />
      <Section title={`What ${base.name} needs`}>
        <Suspense fallback={<Skeleton className="h-24" />}>
          <Markdown text={base.prerequisites.replace(/^## Prerequisites\s+/, "")} shift={2} />
        </Suspense>
      </Section>
    </Stack>
  );
}
