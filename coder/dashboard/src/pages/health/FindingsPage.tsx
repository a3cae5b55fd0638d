// Errors and warnings with their remedies, then all checks.
import { ArrowRight, HeartPulse } from "lucide-react";
import { Link } from "react-router";

import { StatusText, Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { Card, Section } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { useReport } from "./HealthLayout";
import { findings, SECTIONS, TONES, WORDS } from "./sections";

export function FindingsPage() {
  useTitle("Health");
  const report = useReport();
  const problems = findings(report);
  return (
    <>
      <PageHead title="Health" description="Results of the deployment's self-checks." />
      <Stack>
        {problems.length === 0 ? (
          <Card>
            <Empty icon={HeartPulse} title="Everything is healthy">
              All {SECTIONS.length} checks passed.
            </Empty>
          </Card>
        ) : (
          problems.map((item) => (
            <Notice
              key={`${item.section.key} ${item.code} ${item.message}`}
              kind={item.severity}
              title={
                <>
                  {item.section.title}: {item.message}
                </>
              }
              actions={
                <ButtonLink size="sm" to={item.section.path}>
                  See details
                  <ArrowRight />
                </ButtonLink>
              }
            >
              <p>
                {item.advice} <code className="text-xs">{item.code}</code>
              </p>
            </Notice>
          ))
        )}
        <Section title="All checks" padded={false}>
          <ul className="divide-y divide-line" aria-label="Checks">
            {SECTIONS.map((section) => {
              const part = report[section.key];
              return (
                <li key={section.key}>
                  <Link
                    to={section.path}
                    className="flex flex-wrap items-center gap-x-4 gap-y-1 px-5 py-3 hover:bg-hover"
                  >
                    <span className="min-w-0 flex-1 basis-60">
                      <span className="block font-medium">{section.title}</span>
                      <span className="block text-sm text-muted">{section.about}</span>
                    </span>
                    {part.dismissed ? <Tag>Dismissed</Tag> : null}
                    <StatusText tone={TONES[part.severity]}>{WORDS[part.severity]}</StatusText>
                  </Link>
                </li>
              );
            })}
          </ul>
        </Section>
      </Stack>
    </>
  );
}
