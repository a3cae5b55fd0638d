// Tells screen readers the title of each page that the router opens: no document loads, which they would announce.
import { useEffect, useRef, useState } from "react";
import { useLocation } from "react-router";

/** Titles with a name from the server follow the path; only the last one is announced. */
const SETTLED_MS = 300;

export function PageAnnouncer() {
  const { pathname } = useLocation();
  const announced = useRef(pathname);
  const [title, setTitle] = useState("");
  useEffect(() => {
    if (announced.current === pathname) return undefined;
    let timer = 0;
    const wait = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => {
        announced.current = pathname;
        watch.disconnect();
        // Pages that share a title differ in their headings.
        setTitle((last) =>
          document.title === last
            ? (document.querySelector("h1")?.textContent ?? last)
            : document.title,
        );
      }, SETTLED_MS);
    };
    const watch = new MutationObserver(wait);
    watch.observe(document.head, { childList: true, characterData: true, subtree: true });
    wait();
    return () => {
      window.clearTimeout(timer);
      watch.disconnect();
    };
  }, [pathname]);
  return (
    <p role="status" aria-label="Page" className="sr-only">
      {title}
    </p>
  );
}
