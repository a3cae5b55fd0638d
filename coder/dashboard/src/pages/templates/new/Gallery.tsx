// The starter templates for a new template, grouped by what they need.
import { useQuery } from "@tanstack/react-query";
import { Blocks } from "lucide-react";
import { useState } from "react";

import { builderBases, templateExamples } from "../../../api/queries/templates";
import type { TemplateExample } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Tag } from "../../../ui/Badge";
import { ButtonLink } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { TextField } from "../../../ui/forms/Field";
import { Skeleton } from "../../../ui/Loading";
import { PageHead, Stack } from "../../../ui/Page";
import { groupExamples } from "./example-groups";
import { UploadBox, type Uploaded } from "./UploadBox";

const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(17rem,100%),1fr))] gap-3";

export function Gallery({ onFile }: { onFile: (file: Uploaded) => void }) {
  const examples = useQuery(templateExamples);
  const builder = useQuery(builderBases); // an administrator may have disabled it
  const [text, setText] = useState("");
  const groups = groupExamples(examples.data ?? [], text);
  return (
    <>
      <PageHead
        title="Create a Template"
        crumbs={[["Templates", "/templates"], ["New template"]]}
        description="Start with an example or upload your own files."
        actions={
          builder.data ? (
            <ButtonLink variant="primary" icon={<Blocks />} to="/templates/new/builder">
              Open template builder
            </ButtonLink>
          ) : null
        }
      />
      <Stack className="gap-6">
        <UploadBox onFile={onFile} />
        <section aria-label="Examples">
          <div className="mb-4 flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
            <h2 className="text-lg font-semibold">Starter templates</h2>
            <div className="w-72 max-sm:w-full">
              <TextField
                label="Search starter templates"
                hideLabel
                type="search"
                placeholder="Search by name or tag"
                data-shortcut="/"
                value={text}
                onChange={setText}
              />
            </div>
          </div>
          {examples.isPending ? (
            <div role="status" aria-label="Loading" className={GRID}>
              {[1, 2, 3, 4, 5, 6].map((card) => (
                <Skeleton key={card} className="h-40 rounded-xl" />
              ))}
            </div>
          ) : null}
          {examples.isError ? (
            <Failure error={examples.error} retry={() => void examples.refetch()} />
          ) : null}
          {examples.data && groups.length === 0 ? (
            <p role="status" className="text-muted">
              No starter template matches. Change or clear the search.
            </p>
          ) : null}
          <Stack className="gap-6">
            {groups.map((group) => (
              <section key={group.title} aria-label={group.title}>
                <h3 className="font-semibold">{group.title}</h3>
                <p className="mb-2.5 text-sm text-muted">{group.hint}</p>
                <ul className={GRID}>
                  {group.examples.map((item) => (
                    <Starter key={item.id} example={item} />
                  ))}
                </ul>
              </section>
            ))}
          </Stack>
        </section>
      </Stack>
    </>
  );
}

function Starter({ example }: { example: TemplateExample }) {
  return (
    <li>
      <Card className="flex h-full flex-col gap-3 p-4">
        <div className="flex items-center gap-3">
          <Avatar name={example.name} src={example.icon} size="lg" square />
          <h4 className="font-semibold">{example.name}</h4>
        </div>
        <p className="flex-1 text-sm text-muted">{example.description}</p>
        {example.tags.length > 0 ? (
          <p className="flex flex-wrap gap-1">
            {example.tags.map((tag) => (
              <Tag key={tag}>{tag}</Tag>
            ))}
          </p>
        ) : null}
        <div className="flex gap-2">
          <ButtonLink
            size="sm"
            to={`/templates/new?exampleId=${example.id}`}
            aria-label={`Use template ${example.name}`}
          >
            Use template
          </ButtonLink>
          <ButtonLink
            size="sm"
            variant="quiet"
            to={`/starter-templates/${example.id}`}
            aria-label={`Read more about ${example.name}`}
          >
            Read more
          </ButtonLink>
        </div>
      </Card>
    </li>
  );
}
