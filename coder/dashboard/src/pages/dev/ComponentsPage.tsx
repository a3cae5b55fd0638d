// Every part of the design in every state, in the theme chosen above. Development builds only.
import { Boxes, Play, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import { applyTheme, isTheme, THEMES } from "../../features/appearance/theme";
import { Avatar } from "../../ui/Avatar";
import { StatusText, Tag, type Tone } from "../../ui/Badge";
import { Button, IconButton } from "../../ui/Button";
import { Facts, Section } from "../../ui/Card";
import { Chart } from "../../ui/Chart";
import { CodeBox } from "../../ui/text/CodeBox";
import { Combobox } from "../../ui/forms/Combobox";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Selected } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import {
  Checkbox,
  RadioCards,
  SelectField,
  Switch,
  TextArea,
  TextField,
} from "../../ui/forms/Field";
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

const TONES: readonly Tone[] = ["good", "warn", "bad", "busy", "idle", "accent"];
const COLOURS = [
  "bg",
  "surface",
  "inset",
  "raised",
  "hover",
  "selected",
  "line",
  "line-strong",
  "text",
  "muted",
  "faint",
  "accent",
  "good",
  "warn",
  "bad",
  "busy",
  "idle",
];
const LINES = Array.from({ length: 20_000 }, (_, index) => ({
  id: index,
  text: `\u001b[3${index % 8}mline ${index}\u001b[0m of a long log`,
  level: index % 50 === 0 ? "error" : "info",
  stage: `Stage ${Math.floor(index / 500)}`,
}));
const DAYS = Array.from({ length: 30 }, (_, index) => Date.UTC(2026, 0, index + 1));
const MANY = Array.from({ length: 5000 }, (_, index) => ({
  value: String(index),
  text: `Option ${index}`,
}));

export function ComponentsPage() {
  useTitle("Components");
  const [text, setText] = useState("");
  const [on, setOn] = useState(true);
  const [choice, setChoice] = useState("a");
  const [tab, setTab] = useState("one");
  const [asking, setAsking] = useState(false);
  const [selected, setSelected] = useState<Selected>({});
  return (
    <Stack>
      <PageHead
        title="Components"
        description="Every part of the design in every state."
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
            <Button key={look} look={look} icon={<Play />}>
              {look}
            </Button>
          ))}
        </Row>
        <Row>
          {(["primary", "secondary", "quiet", "danger"] as const).map((look) => (
            <Button key={look} look={look} disabled>
              disabled
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
            <MenuItem danger icon={<Trash2 />} onSelect={() => setAsking(true)}>
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
      <Section title="Fields">
        <Stack className="max-w-xl">
          <TextField
            label="Name"
            hint="Letters, digits and hyphens."
            value={text}
            onChange={setText}
            required
          />
          <TextField
            label="Wrong"
            value="x y"
            problem="No spaces are allowed."
            onChange={() => undefined}
          />
          <TextField
            label="Disabled"
            value="cannot be changed"
            disabled
            onChange={() => undefined}
          />
          <TextArea label="Description" value={text} onChange={setText} />
          <SelectField
            label="One of few"
            value={choice}
            onChange={setChoice}
            options={[
              ["a", "First"],
              ["b", "Second"],
            ]}
          />
          <Combobox label="One of 5,000" value={choice} onChange={setChoice} options={MANY} />
          <Checkbox label="Remember" hint="For a month." checked={on} onChange={setOn} />
          <Switch label="Notify" hint="By mail." checked={on} onChange={setOn} />
          <RadioCards
            label="Size"
            value={choice}
            onChange={setChoice}
            options={[
              { value: "a", text: "Small", hint: "2 cores" },
              { value: "b", text: "Large", hint: "8 cores" },
            ]}
          />
        </Stack>
      </Section>
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
          actions={<Button look="primary">New workspace</Button>}
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
        open={asking}
        onClose={() => setAsking(false)}
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
