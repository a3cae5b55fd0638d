// The starter templates for a new template.
import { useQuery } from "@tanstack/react-query";

import { templateExamples } from "../../../api/queries/templates";
import { Avatar } from "../../../ui/Avatar";
import { ButtonLink } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead, Stack } from "../../../ui/Page";
import { UploadBox, type Uploaded } from "./UploadBox";

export function Gallery({ onFile }: { onFile: (file: Uploaded) => void }) {
  const examples = useQuery(templateExamples);
  return (
    <>
      <PageHead
        title="Create a Template"
        crumbs={[["Templates", "/templates"], ["New template"]]}
        description="Start with an example or upload your own files."
      />
      <Stack className="gap-6">
        <UploadBox onFile={onFile} />
        <section aria-label="Examples">
          <h2 className="mb-3 text-lg font-semibold">Starter templates</h2>
          {examples.isPending ? <SkeletonRows /> : null}
          {examples.isError ? (
            <Failure error={examples.error} retry={() => void examples.refetch()} />
          ) : null}
          <ul className="grid grid-cols-[repeat(auto-fill,minmax(17rem,1fr))] gap-3">
            {(examples.data ?? []).map((item) => (
              <li key={item.id}>
                <Card className="flex h-full flex-col gap-3 p-4">
                  <div className="flex items-center gap-3">
                    <Avatar name={item.name} src={item.icon} size="lg" square />
                    <h3 className="font-semibold">{item.name}</h3>
                  </div>
                  <p className="flex-1 text-sm text-muted">{item.description}</p>
                  <div className="flex gap-2">
                    <ButtonLink
                      size="sm"
                      to={`/templates/new?exampleId=${item.id}`}
                      aria-label={`Use template ${item.name}`}
                    >
                      Use template
                    </ButtonLink>
                    <ButtonLink
                      size="sm"
                      variant="quiet"
                      to={`/starter-templates/${item.id}`}
                      aria-label={`Read more about ${item.name}`}
                    >
                      Read more
                    </ButtonLink>
                  </div>
                </Card>
              </li>
            ))}
          </ul>
        </section>
      </Stack>
    </>
  );
}
