// The head of one check's page: its state, its problems with their remedies, and dismissing its
// warnings.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { BellOff, BellRing } from "lucide-react";
import { useState, type ReactNode } from "react";

import { put } from "../../api/client";
import { changeOptimistically, shownIn } from "../../api/optimistic";
import { usePermissions } from "../../api/permissions";
import { healthReport, healthSettings } from "../../api/queries/health";
import type { HealthSettings } from "../../api/types";
import { StatusText, Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { useReport } from "./HealthLayout";
import { findings, SECTIONS, TONES, WORDS, type HealthSection, type SectionKey } from "./sections";

export function SectionPage({ part, children }: { part: SectionKey; children: ReactNode }) {
  const report = useReport();
  const section = SECTIONS.find((item) => item.key === part) as HealthSection;
  useTitle(section.crumb ?? section.title, "Health");
  const problems = findings({ ...report, [part]: { ...report[part], dismissed: false } }).filter(
    (item) => item.section.key === part,
  );
  return (
    <>
      <PageHead
        title={section.title}
        description={section.about}
        badge={
          <>
            <StatusText tone={TONES[report[part].severity]}>
              {WORDS[report[part].severity]}
            </StatusText>
            {report[part].dismissed ? <Tag>Dismissed</Tag> : null}
          </>
        }
        actions={<Dismiss section={section} />}
      />
      <Stack>
        {problems.map((item) => (
          <Notice key={item.code + item.message} kind={item.severity} title={item.message}>
            <p>
              {item.advice} <code className="text-xs">{item.code}</code>
            </p>
          </Notice>
        ))}
        {children}
      </Stack>
    </>
  );
}

function Dismiss({ section }: { section: HealthSection }) {
  const may = usePermissions();
  const queries = useQueryClient();
  const settings = useQuery(healthSettings);
  const [busy, setBusy] = useState(false);
  if (!settings.data || !may.editDeploymentConfig) return null;
  const current = settings.data;
  const off = current.dismissed_healthchecks.includes(section.dismiss);
  const change = async () => {
    setBusy(true);
    const dismiss = ({ dismissed_healthchecks }: HealthSettings): HealthSettings => {
      const others = dismissed_healthchecks.filter((name) => name !== section.dismiss);
      return { dismissed_healthchecks: off ? others : [...others, section.dismiss] };
    };
    try {
      // Built from the shown settings, including changes of other checks in flight: each request contains
      // all settings.
      const next = dismiss(queries.getQueryData(healthSettings.queryKey) ?? current);
      await changeOptimistically(queries, [shownIn(healthSettings.queryKey, dismiss)], () =>
        put("/api/v2/debug/health/settings", next),
      );
      await queries.invalidateQueries({ queryKey: healthReport.queryKey, exact: true });
      toast.done(
        off ? `Warnings for ${section.title} enabled.` : `Warnings for ${section.title} dismissed.`,
      );
    } catch (error) {
      toast.failed("Failed to update the warnings", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button icon={off ? <BellRing /> : <BellOff />} busy={busy} onClick={() => void change()}>
      {off ? "Enable warnings" : "Dismiss warnings"}
    </Button>
  );
}
