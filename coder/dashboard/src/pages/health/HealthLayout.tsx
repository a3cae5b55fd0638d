// The frame of the health pages: overall severity, time of the last check, and checking again.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";
import { Outlet, useOutletContext } from "react-router";

import { get } from "../../api/client";
import { setServerData } from "../../api/optimistic";
import { usePermissions } from "../../api/permissions";
import { healthReport } from "../../api/queries/health";
import type { HealthcheckReport } from "../../api/types";
import { SidePage } from "../../features/navigation/SidePage";
import { Ago } from "../../ui/Ago";
import { StatusText } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { SECTIONS, TONES, WORDS } from "./sections";

export function HealthLayout() {
  const may = usePermissions();
  const report = useQuery({ ...healthReport, enabled: may.viewDebugInfo });
  if (may.known && !may.viewDebugInfo) return <Refused />;
  return (
    <SidePage
      label="Health"
      groups={[
        { items: [{ to: "/health", text: "Findings" }] },
        { title: "Checks", items: SECTIONS.map(({ path, title }) => ({ to: path, text: title })) },
      ]}
      head={report.data ? <OverallHealth report={report.data} /> : null}
    >
      {report.isError ? (
        <Failure
          error={report.error}
          retry={() => void report.refetch()}
          title="Failed to create the health report"
        />
      ) : null}
      {report.isPending ? (
        <>
          <PageHead title="Health" description="Running all checks; this takes a few seconds." />
          <SkeletonRows rows={5} />
        </>
      ) : null}
      {report.data ? <Outlet context={report.data} /> : null}
    </SidePage>
  );
}

function Refused() {
  useTitle("Health");
  return <PermissionDenied subject="the deployment’s health" />;
}

function OverallHealth({ report }: { report: HealthcheckReport }) {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const refresh = async () => {
    setBusy(true);
    try {
      setServerData(
        queries,
        healthReport.queryKey,
        await get<HealthcheckReport>("/api/v2/debug/health?force=true"),
      );
    } catch (error) {
      toast.failed("Failed to run the health check", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="flex flex-col gap-2">
      <StatusText tone={TONES[report.severity]}>{WORDS[report.severity]}</StatusText>
      <p className="text-sm text-muted">
        Checked <Ago at={report.time} />
      </p>
      <div>
        <Button size="sm" icon={<RefreshCw />} busy={busy} onClick={() => void refresh()}>
          Check again
        </Button>
      </div>
    </div>
  );
}

export const useReport = () => useOutletContext<HealthcheckReport>();
