// All UI components in every state, in the theme chosen above. Development builds only.
import { Boxes, Play, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import { applyTheme, isTheme, THEMES } from "../../features/appearance/theme";
import { Avatar } from "../../ui/Avatar";
import { StatusText, Tag } from "../../ui/Badge";
import { Button, IconButton } from "../../ui/Button";
import { Facts, Section } from "../../ui/Card";
import { Chart } from "../../ui/Chart";
import { CodeBox } from "../../ui/text/CodeBox";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Selected } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SelectField } from "../../ui/forms/Field";
import { FilterBar } from "../../ui/lists/FilterBar";
import { Loading, SkeletonRows } from "../../ui/Loading";
import { LogView } from "../../ui/text/LogView";
import { Markdown } from "../../ui/text/Markdown";
import { Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { Pager } from "../../ui/lists/Pager";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { FieldSamples } from "./FieldSamples";
import { COLOURS, TONES, LINES, DAYS } from "./samples";

export function ComponentsPage() {
  useTitle("Components");
  const [text, setText] = useState("");
  const [tab, setTab] = useState("one");
  const [confirming, setConfirming] = useState(false);
  const [selected, setSelected] = useState<Selected>({});
  return (
    <Stack>
      <PageHead
        title="Components"
        description="All UI components in every state."
        actions={
          <SelectField
            label="Theme"
            hideLabel
            value={document.documentElement.dataset["theme"] ?? ""}
            options={THEMES.map((name) => [name, name] as const)}
            onChange={(name) => {
              if (isTheme(name)) {
                applyTheme(name, name);
                setText((old) => `${old}`);
              }
            }}
          />
        }
      />
      <Section title="Colours">
        <div className="grid grid-cols-[repeat(auto-fill,minmax(7rem,1fr))] gap-2">
          {COLOURS.map((name) => (
            <div key={name}>
              <div
                className="h-10 rounded-md border border-line"
                style={{ background: `var(--${name})` }}
              />
              <span className="text-sm text-muted">{name}</span>
            </div>
          ))}
        </div>
      </Section>
      <Section title="Type">
        <p className="text-2xl font-semibold tracking-tight">Page title</p>
        <p className="text-xl font-semibold">Card title</p>
        <p className="text-lg">Larger text</p>
        <p>Text as it is read</p>
        <p className="text-sm text-muted">Quieter text</p>
        <code>monospace 0O 1lI</code>
      </Section>
      <Section title="Buttons">
        <Row>
          {(["primary", "secondary", "quiet", "danger"] as const).map((look) => (
            <Button key={look} variant={look} icon={<Play />}>
              {look}
            </Button>
          ))}
        </Row>
        <Row>
          {(["primary", "secondary", "quiet", "danger"] as const).map((look) => (
            <Button key={look} variant={look} disabled>
              Disabled
            </Button>
          ))}
          <Button busy>Busy</Button>
          <Button size="sm">Small</Button>
          <IconButton label="Delete">
            <Trash2 />
          </IconButton>
        </Row>
        <Row>
          <Menu trigger={<Button>Menu</Button>}>
            <MenuItem icon={<Play />} onSelect={() => toast.done("Started.")}>
              Start
            </MenuItem>
            <MenuItem disabled hint="It is running already.">
              Stop
            </MenuItem>
            <MenuSeparator />
            <MenuItem danger icon={<Trash2 />} onSelect={() => setConfirming(true)}>
              Delete…
            </MenuItem>
          </Menu>
          <Button onClick={() => toast.done("Saved.")}>Message</Button>
          <Button onClick={() => toast.failed("Could not save", new Error("The server said no."))}>
            Problem
          </Button>
        </Row>
      </Section>
      <Section title="States">
        <Row>
          {TONES.map((tone) => (
            <StatusText key={tone} tone={tone} pulse={tone === "busy"}>
              {tone}
            </StatusText>
          ))}
        </Row>
        <Row>
          {TONES.map((tone) => (
            <Tag key={tone} tone={tone}>
              {tone}
            </Tag>
          ))}
        </Row>
      </Section>
      <Section title="People and things">
        <Row>
          {(["xs", "sm", "md", "lg", "xl"] as const).map((size) => (
            <Avatar key={size} name="Ana" size={size} />
          ))}
          <Avatar name="docker" square size="lg" src="/icon/none.svg" />
        </Row>
      </Section>
      <Section title="Notices">
        <Stack>
          {(["info", "good", "warning", "error"] as const).map((kind) => (
            <Notice key={kind} kind={kind} title={`A ${kind}`}>
              What it means and what to do.
            </Notice>
          ))}
          <Failure error={new Error("Something failed.")} retry={() => undefined} />
        </Stack>
      </Section>
      <FieldSamples text={text} onText={setText} />
      <Section title="Code">
        <CodeBox
          label="Command"
          command={'curl -fsSL "https://…/init-script/linux/amd64" | CODER_AGENT_TOKEN="secret" sh'}
        />
      </Section>
      <Section title="Tables" padded={false}>
        <div className="p-4">
          <FilterBar
            label="Search"
            placeholder="name:…"
            filter=""
            onChange={() => undefined}
            presets={[["All", ""]]}
            menus={[
              { term: "status", label: "Status", options: [{ value: "running", text: "Running" }] },
            ]}
          />
          <DataTable
            label="Things"
            data={[
              { name: "one", size: 1 },
              { name: "two", size: 2 },
            ]}
            rowKey={(row) => row.name}
            selection={{ selected, onChange: setSelected, name: (row) => row.name }}
            columns={[
              { id: "name", header: "Name", cell: (row) => row.name },
              { id: "size", header: "Size", align: "right", cell: (row) => row.size },
            ]}
          />
          <Pager page={2} stale={false} size={25} total={120} onChange={() => undefined} />
        </div>
      </Section>
      <Section title="Nothing and waiting">
        <Empty
          icon={Boxes}
          title="No workspaces yet"
          command="coder create dev"
          actions={<Button variant="primary">New workspace</Button>}
        >
          Create one from a template.
        </Empty>
        <Loading />
        <SkeletonRows rows={2} />
      </Section>
      <Section title="Tabs">
        <Tabs
          label="Parts"
          value={tab}
          onChange={setTab}
          items={[
            { value: "one", text: "One" },
            { value: "two", text: "Two" },
          ]}
        >
          <TabPanel value="one" className="pt-3">
            First
          </TabPanel>
          <TabPanel value="two" className="pt-3">
            Second
          </TabPanel>
        </Tabs>
      </Section>
      <Section title="Log of 20,000 lines">
        <LogView label="Log" lines={LINES} times={false} />
      </Section>
      <Section title="Chart">
        <Chart
          label="Daily users"
          times={DAYS}
          series={[
            {
              name: "Users",
              values: DAYS.map((_, index) => 5 + Math.round(4 * Math.sin(index / 3))),
            },
          ]}
        />
      </Section>
      <Section title="Markdown">
        <Markdown
          text={
            "# Title\n\nText with `code`, a [link](https://example.com) and a list:\n\n- one\n- " +
            "two\n\n```sh\ncoder login\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |"
          }
        />
      </Section>
      <Section title="Facts">
        <Facts
          items={[
            ["Name", "dev"],
            ["Owner", "ana"],
          ]}
        />
      </Section>
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Delete dev?"
        confirm="Delete"
        typed="dev"
        onConfirm={async () => undefined}
      >
        Everything on its disk is lost. This cannot be undone.
      </Confirm>
    </Stack>
  );
}

function Row({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap items-center gap-3 py-1.5">{children}</div>;
}
