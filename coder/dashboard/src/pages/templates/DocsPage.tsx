import { FileText } from "lucide-react";
import { lazy, Suspense } from "react";

import { Card } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Skeleton } from "../../ui/Loading";
import { useTitle } from "../../ui/title";
import { withoutFrontMatter } from "./front-matter";
import { useTemplateContext } from "./TemplateLayout";

const Markdown = lazy(() => import("../../ui/text/Markdown"));

/** The documentation of a template, from its README. */
export function DocsPage() {
  const { template, version } = useTemplateContext();
  useTitle(template.name, "Documentation");
  const readme = withoutFrontMatter(version.readme); // front matter is for the gallery
  if (readme.trim() === "")
    return (
      <Empty icon={FileText} title="No documentation">
        Add a README.md to the template’s files to show it here.
      </Empty>
    );
  return (
    <Card className="px-6 py-5 max-sm:px-4">
      <Suspense fallback={<Skeleton className="h-64" />}>
        <Markdown text={readme} shift={1} />
      </Suspense>
    </Card>
  );
}
