// The template builder: a base, modules, their values, the composed files, then the form of a new
// template. What was entered stays while the user goes back and forth.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { NO_TEMPLATES, usePermissions } from "../../../api/permissions";
import { builderBases, builderModules } from "../../../api/queries/templates";
import type { TemplateBuilderBase, TemplateBuilderModule } from "../../../api/types";
import { Button, ButtonLink } from "../../../ui/Button";
import { cx } from "../../../ui/cx";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { CreateForm } from "../new/CreateForm";
import type { ArchiveFile } from "../tar";
import { BaseStep } from "./BaseStep";
import type { Values } from "./composition";
import { ModulesStep } from "./ModulesStep";
import { ParametersStep } from "./ParametersStep";
import { ReviewStep } from "./ReviewStep";

const STEPS = ["Base", "Modules", "Parameters", "Review"] as const;
type Step = (typeof STEPS)[number];
const FIRST = "docker";

export function BuilderPage() {
  useTitle("Template Builder");
  const may = usePermissions();
  const bases = useQuery({ ...builderBases, enabled: may.createAnyTemplate });
  if (may.known && !may.createAnyTemplate)
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title={NO_TEMPLATES}
        actions={<ButtonLink to="/templates">View templates</ButtonLink>}
      >
        Ask an administrator of the organization for this permission.
      </Empty>
    );
  if (bases.isLoadingError)
    return (
      <>
        <Head />
        <Failure error={bases.error} retry={() => void bases.refetch()} />
      </>
    );
  return bases.data ? <Builder bases={bases.data} /> : <SkeletonRows />;
}

function Head() {
  return (
    <PageHead
      title="Template builder"
      crumbs={[["Templates", "/templates"], ["New template", "/templates/new"], ["Builder"]]}
      description="Compose a template from a base and modules."
      actions={
        <ButtonLink variant="quiet" to="/templates/new">
          Starter templates and upload
        </ButtonLink>
      }
    />
  );
}

function Builder({ bases }: { bases: readonly TemplateBuilderBase[] }) {
  const [step, setStep] = useState<Step>("Base");
  const [baseId, setBaseId] = useState(FIRST);
  const [ids, setIds] = useState<readonly string[]>([]);
  const [entered, setEntered] = useState<Values>({});
  const [files, setFiles] = useState<readonly ArchiveFile[]>([]);
  const [uploaded, setUploaded] = useState("");
  const base = bases.find((item) => item.id === baseId) ?? bases[0];
  const modules = useQuery({ ...builderModules(base?.id ?? ""), enabled: base !== undefined });
  const panel = useRef<HTMLDivElement>(null);
  const shown = useRef(step);
  // A new step replaces the old one: keyboard and screen reader start at its beginning.
  useEffect(() => {
    if (shown.current === step) return;
    shown.current = step;
    window.scrollTo(0, 0);
    panel.current?.focus({ preventScroll: true });
  }, [step]);
  if (!base) return null;
  const chosen = ids.flatMap(
    (id): TemplateBuilderModule[] => modules.data?.filter((module) => module.id === id) ?? [],
  );
  if (uploaded !== "")
    return (
      <CreateForm
        source={{
          body: { file_id: uploaded },
          name: base.id,
          display: base.name,
          description: base.description,
          icon: base.icon,
          title: "Template builder",
          back: { text: "Back to the files", onBack: () => setUploaded("") },
        }}
        provisioner="terraform"
        then="files"
      />
    );
  const at = STEPS.indexOf(step);
  return (
    <>
      <Head />
      <StepList at={at} />
      <div
        ref={panel}
        tabIndex={-1}
        role="group"
        aria-label={`Step ${at + 1} of ${STEPS.length}: ${step}`}
        className="flex flex-col gap-4 outline-none"
      >
        {step === "Base" ? (
          <>
            <BaseStep bases={bases} base={base} onChange={setBaseId} />
            <Walk onNext={() => setStep("Modules")} next="Choose modules" />
          </>
        ) : step === "Modules" ? (
          <>
            {modules.isLoadingError ? (
              <Failure error={modules.error} retry={() => void modules.refetch()} />
            ) : modules.data ? (
              <ModulesStep modules={modules.data} chosen={chosen} onChange={setIds} />
            ) : (
              <SkeletonRows />
            )}
            <Walk
              onBack={() => setStep("Base")}
              onNext={() => setStep("Parameters")}
              next="Set parameters"
              disabled={!modules.data}
            />
          </>
        ) : step === "Parameters" ? (
          <ParametersStep
            base={base}
            chosen={chosen}
            entered={entered}
            onBack={(values) => {
              setEntered({ ...entered, ...values });
              setStep("Modules");
            }}
            onComposed={(values, composed) => {
              setEntered({ ...entered, ...values });
              setFiles(composed);
              setStep("Review");
            }}
          />
        ) : (
          <ReviewStep
            files={files}
            onBack={() => setStep("Parameters")}
            onUploaded={(file, changed) => {
              setFiles(changed);
              setUploaded(file);
            }}
          />
        )}
      </div>
    </>
  );
}

function StepList({ at }: { at: number }) {
  return (
    <ol aria-label="Steps" className="mb-5 flex flex-wrap gap-x-6 gap-y-1 text-sm">
      {STEPS.map((name, index) => (
        <li
          key={name}
          aria-current={index === at ? "step" : undefined}
          className={cx(index === at ? "font-semibold text-text" : "text-muted")}
        >
          {index + 1}. {name}
        </li>
      ))}
    </ol>
  );
}

function Walk({
  onBack,
  onNext,
  next,
  disabled = false,
}: {
  onBack?: () => void;
  onNext: () => void;
  next: string;
  disabled?: boolean;
}) {
  return (
    <div className="flex flex-wrap justify-end gap-2">
      {onBack ? <Button onClick={onBack}>Back</Button> : null}
      <Button variant="primary" disabled={disabled} onClick={onNext}>
        {next}
      </Button>
    </div>
  );
}
