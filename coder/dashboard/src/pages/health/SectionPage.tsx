// The head of one part's page: its state, its findings with what to do, switching its warnings off.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { BellOff, BellRing } from "lucide-react";
import { useState, type ReactNode } from "react";

import { put } from "../../api/client";
import { setKnown } from "../../api/overtaken";
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
  useTitle(section.title, "Health");
  const found = findings({ ...report, [part]: { ...report[part], dismissed: false } }).filter((item) => item.section.key === part);
  return (
    <>
      <PageHead title={section.title} description={section.about} badge={<><StatusText tone={TONES[report[part].severity]}>{WORDS[report[part].severity]}</StatusText>{report[part].dismissed ? <Tag>Dismissed</Tag> : null}</>} actions={<Dismiss section={section} />} />
      <Stack>
        {found.map((item) => <Notice key={item.code + item.message} kind={item.severity} title={item.message}><p>{item.advice} <code className="text-xs">{item.code}</code></p></Notice>)}
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
  const now = settings.data.dismissed_healthchecks;
  const off = now.includes(section.dismiss);
  const change = async () => {
    setBusy(true);
    try {
      const next: HealthSettings = { dismissed_healthchecks: off ? now.filter((name) => name !== section.dismiss) : [...now, section.dismiss] };
      await put("/api/v2/debug/health/settings", next);
      setKnown(queries, healthSettings.queryKey, next);
      await queries.invalidateQueries({ queryKey: healthReport.queryKey, exact: true });
      toast.done(off ? `${section.title} warns again.` : `${section.title} no longer warns.`);
    } catch (error) {
      toast.failed("It was not changed", error);
    } finally {
      setBusy(false);
    }
  };
  return <Button icon={off ? <BellRing /> : <BellOff />} busy={busy} onClick={() => void change()}>{off ? "Enable warnings" : "Dismiss warnings"}</Button>;
}
