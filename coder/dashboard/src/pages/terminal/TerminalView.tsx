// xterm.js over the reconnecting PTY's WebSocket.
import { useQuery } from "@tanstack/react-query";
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";

import { useAppBase, useTerminalBase } from "../../api/app-base";
import { myAppearance } from "../../api/queries/session";
import type { Workspace, WorkspaceAgent } from "../../api/types";
import { counted } from "../../lib/words";
import { loadTerminalFont, terminalFamily } from "../../ui/text/terminal-fonts";
import { portAddress } from "../../features/workspace/port-address";
import { toast } from "../../ui/toast";
import { ClipboardGuards } from "./ClipboardGuards";
import { onProgramCopy } from "./clipboard-sequence";
import { marksOf, READABLE, themeOf } from "./colours";
import { guardPaste } from "./paste";
import { drawBy } from "./renderer";
import { connect, type TerminalRequest, type TerminalState } from "./stream";
import { TerminalKeys } from "./TerminalKeys";
import { TerminalSearch } from "./TerminalSearch";

/** Longest wait for the font before the terminal opens. */
const FONT_MS = 500;
const LOCAL = /^(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])$/;

interface TerminalViewProps {
  agent: WorkspaceAgent;
  workspace: Workspace;
  request: TerminalRequest;
  onState: (state: TerminalState) => void;
  searching: boolean;
  onSearching: (searching: boolean) => void;
  /** Moves the focus out of the terminal, which keeps Tab for its programs. */
  onLeave: () => void;
  /** The id of the text that says how to leave. */
  leaveHint: string;
}

export function TerminalView({
  agent,
  workspace,
  request,
  onState,
  searching,
  onSearching,
  onLeave,
  leaveHint,
}: TerminalViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const font = useQuery(myAppearance).data?.terminal_font ?? "";
  const host = useAppBase()?.host ?? "";
  const baseUrl = useTerminalBase();
  const [search, setSearch] = useState<SearchAddon | null>(null);
  const [pasted, setPasted] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const onStateRef = useRef(onState);
  const open = useRef(onSearching);
  const leave = useRef(onLeave);
  const links = useRef({ host, workspace, agent });
  useEffect(() => {
    onStateRef.current = onState;
    open.current = onSearching;
    leave.current = onLeave;
    links.current = { host, workspace, agent };
  });
  const terminal = useRef<{ screen: Terminal; fit: FitAddon } | null>(null);
  // A font that is not loaded yet would be measured by its fallback, and xterm.js does not measure
  // again. The terminal opens with its font, so that no line moves.
  const family = useRef("monospace");
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let unmounted = false;
    const late = window.setTimeout(() => setReady(true), FONT_MS);
    void loadTerminalFont(font).finally(() => {
      if (unmounted) return;
      setReady(true);
      family.current = terminalFamily(font);
      if (!terminal.current) return;
      terminal.current.screen.options.fontFamily = family.current;
      terminal.current.fit.fit();
    });
    return () => {
      unmounted = true;
      window.clearTimeout(late);
    };
  }, [font]);
  useEffect(() => {
    const element = box.current;
    if (!element || baseUrl === null || !ready) return;
    const screen = new Terminal({
      allowProposedApi: true,
      cursorBlink: true,
      fontFamily: family.current,
      fontSize: 14,
      scrollback: 10_000,
      theme: themeOf(element),
      minimumContrastRatio: READABLE,
      screenReaderMode: false,
    });
    const fit = new FitAddon();
    terminal.current = { screen, fit };
    screen.loadAddon(fit);
    screen.loadAddon(new Unicode11Addon());
    screen.unicode.activeVersion = "11";
    screen.loadAddon(new WebLinksAddon((_, address) => openLink(address, links.current)));
    const finder = new SearchAddon();
    screen.loadAddon(finder);
    screen.attachCustomKeyEventHandler((event) => {
      const act = isSearchKey(event)
        ? () => open.current(true)
        : isLeaveKey(event)
          ? leave.current
          : null;
      if (act === null) return true;
      event.preventDefault();
      if (event.type === "keydown") act();
      return false;
    });
    setSearch(finder);
    screen.open(element);
    screen.textarea?.setAttribute("aria-describedby", leaveHint);
    void drawBy(screen);
    fit.fit();
    screen.focus();
    const stream = connect(screen, baseUrl, agent.id, request, (state) =>
      onStateRef.current(state),
    );
    onProgramCopy(screen, stream.isReplaying, (text) => void copyForProgram(text, setRefused));
    const endGuard = guardPaste(element, screen, setPasted);
    const resize = new ResizeObserver(() => fit.fit());
    resize.observe(element);
    const rows = element.querySelector(".xterm-screen"); // the font size may change without a window resize
    if (rows) resize.observe(rows);
    const repaint = new MutationObserver(() => {
      screen.options.theme = themeOf(element);
    });
    repaint.observe(document.documentElement, {
      attributes: true,
      attributeFilter: ["data-theme"],
    });
    return () => {
      resize.disconnect();
      repaint.disconnect();
      endGuard();
      stream.close();
      terminal.current = null;
      screen.dispose();
    };
  }, [agent.id, request, baseUrl, ready, leaveHint]);
  // The padding is on an outer element: FitAddon counts an element's padding as room for rows.
  return (
    <>
      {searching && search ? (
        <TerminalSearch
          key={agent.id}
          search={search}
          marks={marksOf}
          onClose={() => {
            onSearching(false);
            terminal.current?.screen.focus();
          }}
        />
      ) : null}
      <div className="relative flex min-h-0 flex-1 basis-0 flex-col overflow-hidden p-2">
        <ClipboardGuards
          pasted={pasted}
          refused={refused}
          onPaste={(text) => terminal.current?.screen.paste(text)}
          onPasteEnd={() => {
            setPasted(null);
            terminal.current?.screen.focus();
          }}
          onCopyEnd={() => {
            setRefused(null);
            terminal.current?.screen.focus();
          }}
        />
        <div ref={box} data-testid="terminal" className="min-h-0 flex-1 basis-0 overflow-hidden" />
      </div>
      <TerminalKeys
        onKey={(key) => {
          const screen = terminal.current?.screen;
          screen?.input(key.data(screen.modes.applicationCursorKeysMode));
        }}
      />
    </>
  );
}

/** Copy by the browser's permission; `refuse` receives the text if the browser requires a click. */
async function copyForProgram(text: string, refuse: (text: string) => void): Promise<void> {
  try {
    await navigator.clipboard.writeText(text); // undefined on plain HTTP
    toast.done(`Copied ${counted(text.length, "character")} from the terminal`);
  } catch {
    refuse(text);
  }
}

// A program in the workspace that prints http://localhost:3000 means the workspace: open that port
// through the deployment.
function openLink(
  address: string,
  { host, workspace, agent }: { host: string; workspace: Workspace; agent: WorkspaceAgent },
): void {
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol)) return;
  if (host !== "" && LOCAL.test(url.hostname)) {
    const base = portAddress(
      host,
      Number(url.port || (url.protocol === "https:" ? 443 : 80)),
      url.protocol === "https:" ? "https" : "http",
      workspace,
      agent.name,
    );
    window.open(new URL(url.pathname + url.search + url.hash, base), "_blank", "noreferrer");
  } else window.open(address, "_blank", "noreferrer");
}

const isLeaveKey = ({ key, altKey, ctrlKey, shiftKey, metaKey }: KeyboardEvent): boolean =>
  key.toLowerCase() === "l" && ctrlKey && shiftKey && !altKey && !metaKey;
/** Ctrl+F belongs to the programs in the terminal; Cmd+F is free on a Mac. */
const isSearchKey = ({ key, altKey, ctrlKey, shiftKey, metaKey }: KeyboardEvent): boolean =>
  key.toLowerCase() === "f" && !altKey && ((ctrlKey && shiftKey) || metaKey);
