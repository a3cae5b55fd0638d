// An example of the gallery with its README; and the gallery under its other address.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useParams } from "react-router";

import { NO_TEMPLATES, usePermissions } from "../../api/permissions";
import { templateExamples } from "../../api/queries/templates";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { Skeleton, SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { withoutFrontMatter } from "./front-matter";
import { NewTemplatePage } from "./NewTemplatePage";

const Markdown = lazy(() => import("../../ui/text/Markdown"));

export function StarterGalleryPage() {
  return <NewTemplatePage title="Create a Template" />;
}

export function StarterPage() {
  const id = useParams()["example"] ?? "";
  const may = usePermissions();
  const examples = useQuery(templateExamples);
  const example = examples.data?.find((item) => item.id === id);
  useTitle(example?.name ?? id);
  if (examples.isPending) return <SkeletonRows />;
  if (examples.isLoadingError)
    return <Failure error={examples.error} retry={() => void examples.refetch()} />;
  if (!example) return <NotFoundPage />;
  return (
    <>
      <PageHead
        title={example.name}
        crumbs={[
          ["Templates", "/templates"],
          ["Starter templates", "/starter-templates"],
          [example.name],
        ]}
        icon={<Avatar name={example.name} src={example.icon} size="lg" square />}
        description={example.description}
        badge={example.tags.map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
        actions={
          may.createAnyTemplate ? (
            <ButtonLink variant="primary" to={`/templates/new?exampleId=${example.id}`}>
              Use template
            </ButtonLink>
          ) : may.known ? (
            <span className="text-sm text-muted">{NO_TEMPLATES}</span>
          ) : null
        }
      />
      <Card className="px-6 py-5">
        <Suspense fallback={<Skeleton className="h-64" />}>
          <Markdown text={withoutFrontMatter(example.markdown)} shift={1} />
        </Suspense>
      </Card>
    </>
  );
}
