// Markdown from users: GitHub's dialect, no HTML, links that cannot run scripts. Loaded only when
// shown.
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  img: ({ src, alt }) => (
    <img
      src={typeof src === "string" ? src : undefined}
      alt={alt ?? ""}
      loading="lazy"
      referrerPolicy="no-referrer"
    />
  ),
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};
/** Inside a sentence: no blocks. */
const INLINE = ["a", "code", "em", "strong", "del"];

export function Markdown({
  text,
  inline = false,
  shift = 0,
}: {
  text: string;
  inline?: boolean;
  shift?: number;
}) {
  if (inline) {
    return (
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[rehypeSanitize]}
        components={COMPONENTS}
        allowedElements={INLINE}
        unwrapDisallowed
      >
        {text}
      </ReactMarkdown>
    );
  }
  return (
    <div className="prose">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[rehypeSanitize]}
        components={
          shift > 0 ? { ...COMPONENTS, h1: ({ children }) => <h2>{children}</h2> } : COMPONENTS
        }
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}

export default Markdown;
