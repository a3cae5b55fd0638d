// CodeMirror in the theme's colours: an editor, or a diff of two texts. Loaded only when shown.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { yaml } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { dockerFile } from "@codemirror/legacy-modes/mode/dockerfile";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useId, useRef } from "react";

import { cx } from "../cx";
import { hcl } from "./hcl";

const LOOKS = EditorView.theme({
  "&": {
    height: "100%",
    fontSize: "13px",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
  },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused, &:focus-within": { outline: "2px solid var(--ring)", outlineOffset: "-2px" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": {
    backgroundColor: "var(--selected) !important",
  },
  ".cm-panels": { backgroundColor: "var(--inset)", color: "var(--text)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
  },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-lintRange-error, .cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warn)" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-soft) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft) !important" },
  ".cm-changedText": { background: "none !important", textDecoration: "underline" },
});
const COLOURS = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.modifier], color: "var(--ansi-magenta)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--ansi-green)" },
    { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--ansi-yellow)" },
    { tag: [tags.comment], color: "var(--faint)", fontStyle: "italic" },
    {
      tag: [tags.propertyName, tags.attributeName, tags.definition(tags.variableName)],
      color: "var(--ansi-blue)",
    },
    {
      tag: [tags.typeName, tags.tagName, tags.standard(tags.variableName)],
      color: "var(--ansi-cyan)",
    },
    { tag: [tags.heading], fontWeight: "bold" },
    { tag: tags.link, color: "var(--accent-text)" },
  ]),
);

function language(path: string): Extension {
  if (/\.(tf|tfvars|hcl)$/.test(path)) return StreamLanguage.define(hcl);
  if (/\.md$/i.test(path)) return markdown();
  if (/\.json$/.test(path)) return json();
  if (/\.ya?ml$/.test(path)) return yaml();
  if (/(^|\/)Dockerfile[^/]*$/.test(path)) return StreamLanguage.define(dockerFile);
  if (/\.(sh|bash|tftpl|tpl)$/.test(path)) return StreamLanguage.define(shell);
  return [];
}

/** A diagnostic of a line. */
export interface Mark {
  line: number;
  severity: "error" | "warning";
  message: string;
}

interface CodeEditorProps {
  path: string;
  text: string;
  label: string;
  /** Absent: read-only. */
  onChange?: (text: string) => void;
  /** Shown as a diff from this text. */
  before?: string | undefined;
  /** Shown at their lines, and moved along while the text changes. */
  marks?: readonly Mark[];
  /** The line to scroll to; a new object scrolls there again. */
  target?: { line: number } | null;
  className?: string;
}

const NONE: readonly Mark[] = [];

/** The text of each line without whitespace. */
function diagnosticsOf({ doc }: EditorState, marks: readonly Mark[]): Diagnostic[] {
  return marks
    .filter(({ line }) => line >= 1 && line <= doc.lines)
    .map(({ line, severity, message }) => {
      const { from, to, text } = doc.line(line);
      return { from: Math.min(to, from + text.search(/\S|$/)), to, severity, message };
    });
}

export function CodeEditor({
  path,
  text,
  label,
  onChange,
  before,
  marks = NONE,
  target = null,
  className = "h-full",
}: CodeEditorProps) {
  const hint = useId();
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const onChangeRef = useRef(onChange);
  const first = useRef(text);
  useEffect(() => {
    onChangeRef.current = onChange;
  });
  const editable = onChange !== undefined;
  useEffect(() => {
    first.current = text;
  });
  useEffect(() => {
    if (!box.current) return;
    const editor = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          highlightSelectionMatches(),
          indentUnit.of("  "),
          EditorView.lineWrapping,
          ...(editable
            ? [highlightActiveLine(), highlightActiveLineGutter(), lintGutter()]
            : [EditorState.readOnly.of(true)]),
          keymap.of([
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
            ...(editable ? [...lintKeymap, indentWithTab] : []),
          ]),
          EditorView.contentAttributes.of({
            "aria-label": label,
            tabindex: "0",
            ...(editable ? { "aria-describedby": hint } : {}),
          }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onChangeRef.current?.(update.state.doc.toString());
          }),
          ...(before === undefined
            ? []
            : [
                unifiedMergeView({
                  original: before,
                  mergeControls: false,
                  gutter: true,
                  collapseUnchanged: { margin: 3, minSize: 6 },
                }),
              ]),
          language(path),
          LOOKS,
          COLOURS,
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, [path, label, editable, before, hint]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== text)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editable)
      editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(editor.state, marks)));
  }, [marks, path, label, editable, before]);
  useEffect(() => {
    const editor = view.current;
    if (!editor || !target) return;
    const { from } = editor.state.doc.line(
      Math.min(Math.max(1, target.line), editor.state.doc.lines),
    );
    editor.dispatch({
      selection: { anchor: from },
      effects: EditorView.scrollIntoView(from, { y: "center" }),
    });
    editor.focus();
  }, [target]);
  return (
    <div className={`group relative min-w-0 ${className}`}>
      <div ref={box} className="h-full overflow-hidden" />
      {/* Tab indents. CodeMirror lets go of it after Escape, for two seconds. */}
      {editable ? (
        <p
          id={hint}
          className={cx(
            "pointer-events-none absolute right-4 bottom-1 rounded-sm bg-inset px-1.5 text-xs",
            "text-muted opacity-0 group-focus-within:opacity-100",
          )}
        >
          Esc, then Tab leaves the editor
        </p>
      ) : null}
    </div>
  );
}

export default CodeEditor;
