// Hostile text for every field, and checks that none of it had any effect.
const MARK = "Wozzeck";

export const HOSTILE = {
  image: `<img src=x onerror="window.harmed=1">${MARK}`,
  script: `${MARK}<script>window.harmed=1</script>`,
  drawing: `<svg/onload=window.harmed=1>${MARK}`,
  closed: `"><iframe srcdoc="<script>parent.harmed=1</script>">${MARK}`,
  link: `[${MARK}](javascript:window.harmed=1)`,
  picture: `![${MARK}](x"onerror="window.harmed=1)`,
  template: `{{constructor.constructor('window.harmed=1')()}} \${window.harmed=1} ${MARK}`,
  backwards: `${MARK}\u202Egnp.exe\u2066`,
  escapes: `\u001b]8;;javascript:window.harmed=1\u0007${MARK}\u001b]8;;\u0007 \u001b[31m<b onclick=window.harmed=1>`,
  endless: `${MARK}${"W".repeat(10_000)}`,
} as const;

const WORDS = Object.values(HOSTILE);
const ADDRESSES = [
  "javascript:window.harmed=1",
  "JaVaScRiPt:window.harmed=1//https://",
  "java\nscript:window.harmed=1",
  " javascript:window.harmed=1",
  "data:text/html,<script>parent.harmed=1</script>",
  "vbscript:window.harmed=1",
  'https://x.example/"onerror="window.harmed=1',
];

/** Fields that hold addresses, whatever object they belong to. */
const IS_ADDRESS = /(^|_)(icon|url|uri|target|src|link)$|^avatar_url$/;

/** `value` with a different hostile text in place of each text marked "?". */
export function hostile<T>(value: T): T {
  let words = 0;
  let addresses = 0;
  const swap = (part: unknown, field: string): unknown => {
    if (part === "?")
      return IS_ADDRESS.test(field)
        ? ADDRESSES[addresses++ % ADDRESSES.length]
        : WORDS[words++ % WORDS.length];
    if (Array.isArray(part)) return part.map((item) => swap(item, field));
    if (typeof part === "object" && part !== null)
      return Object.fromEntries(
        Object.entries(part).map(([name, item]) => [name, swap(item, name)]),
      );
    return part;
  };
  return swap(value, "") as T;
}

const RUNS =
  /^\s*(?:j\s*a\s*v\s*a\s*s\s*c\s*r\s*i\s*p\s*t|v\s*b\s*s\s*c\s*r\s*i\s*p\s*t)\s*:|^\s*data:(?!image\/)/i;
const GOES_TO = ["href", "src", "action", "formaction", "xlink:href", "srcdoc", "data"];

/** Elements that no page of the dashboard has: empty for an unharmed page. */
export function findHarm(page: Document): string[] {
  const harmful = [
    ...page.querySelectorAll(
      "script, iframe, object, embed, base, link[rel=import], meta[http-equiv], b, marquee, form[action]",
    ),
  ].map((element) => element.outerHTML.slice(0, 120));
  for (const element of page.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (
        name.startsWith("on") ||
        name === "srcdoc" ||
        (GOES_TO.includes(name) && RUNS.test(value))
      )
        harmful.push(`${element.tagName} ${name}=${value.slice(0, 80)}`);
    }
  }
  if ("harmed" in (page.defaultView ?? {})) harmful.push("a script ran");
  return harmful;
}

/** The number of hostile texts displayed as plain text. */
export function countHostile(page: Document): number {
  return (page.body.textContent ?? "").split(MARK).length - 1;
}
