// A wait without a page. Vitest's own gives up after a second, which says how fast a machine is.
import { vi } from "vitest";

const LIMIT_MS = 20_000;

export const soon = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: LIMIT_MS });
