// How a template's versions do: success, times by stage, the commonest errors, agents that never
// connected, and the builds behind the figures.
import { useQuery } from "@tanstack/react-query";
import { Hammer } from "lucide-react";
import { useSearchParams } from "react-router";

import { templateBuildReport } from "../../../api/queries/templates";
import type { TemplateBuildReport } from "../../../api/types";
import { counted } from "../../../lib/words";
import { Card, Section } from "../../../ui/Card";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { SelectField } from "../../../ui/forms/Field";
import { SkeletonRows } from "../../../ui/Loading";
import { Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { useTemplateContext } from "../TemplateLayout";
import { Builds } from "./Builds";
import { Errors } from "./Errors";
import { StageTimes } from "./StageTimes";
import { Versions } from "./Versions";

export function BuildsPage() {
  const { template } = useTemplateContext();
  useTitle(template.name, "Builds");
  const report = useQuery(templateBuildReport(template.id));
  if (report.isPending) return <SkeletonRows rows={3} />;
  if (report.isLoadingError)
    return <Failure error={report.error} retry={() => void report.refetch()} />;
  return report.data.versions.length === 0 ? (
    <Card>
      <Empty icon={Hammer} title="No builds in the last 30 days">
        Versions appear here with their success rate once workspaces are built from them.
      </Empty>
    </Card>
  ) : (
    <Report report={report.data} />
  );
}

function Report({ report }: { report: TemplateBuildReport }) {
  const [params, setParams] = useSearchParams();
  const choose = (version: string) => setParams({ version }, { replace: true });
  const chosen =
    report.versions.find((version) => version.template_version_id === params.get("version")) ??
    report.versions[0];
  const builds = report.latest.filter(
    (build) => build.template_version_id === chosen?.template_version_id,
  );
  return (
    <Stack>
      <Section
        title="Versions"
        description={
          report.limited
            ? `From the latest ${report.builds} builds.`
            : `From ${counted(report.builds, "build")} of the last 30 days.`
        }
        padded={false}
      >
        <Versions versions={report.versions} onChoose={choose} />
      </Section>
      {chosen ? (
        <Section
          title="Times by stage"
          description="Of successful starts: half took at most p50, 95 % at most p95."
          padded={false}
          actions={
            <SelectField
              label="Version"
              hideLabel
              value={chosen.template_version_id}
              options={report.versions.map(
                (version) => [version.template_version_id, version.template_version_name] as const,
              )}
              onChange={choose}
            />
          }
        >
          <StageTimes stages={chosen.stages} />
        </Section>
      ) : null}
      <Section
        title="Most common errors"
        description="Of workspaces that you may see."
        padded={false}
      >
        <Errors
          errors={report.errors}
          failed={report.versions.reduce((sum, version) => sum + version.failed, 0)}
        />
      </Section>
      {report.unconnected.length > 0 ? (
        <Section
          title="Agents that never connected"
          description="The build succeeded, but its agent did not connect within its time."
          padded={false}
        >
          <Builds label="Agents that never connected" builds={report.unconnected} />
        </Section>
      ) : null}
      {chosen ? (
        <Section
          title={`Latest builds of ${chosen.template_version_name}`}
          description="Among the template’s 100 latest, of workspaces that you may see."
          padded={false}
        >
          {builds.length === 0 ? (
            <p className="px-5 py-4 text-muted">None of the latest builds is of this version.</p>
          ) : (
            <Builds label="Latest builds" builds={builds} />
          )}
        </Section>
      ) : null}
    </Stack>
  );
}
