// Writes compressed copies of scripts and styles beside them: the server sends one of them to clients
// that accept its coding. Browsers accept Brotli over HTTPS only, and gzip everywhere.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import type { Plugin } from "vite";

const COMPRESSIBLE = /\.(?:js|css|svg|json)$/;
const LEAST_BYTES = 512;

const CODINGS: [string, (data: Buffer) => Buffer][] = [
  [
    ".br",
    (data) =>
      brotliCompressSync(data, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
        },
      }),
  ],
  [".gz", (data) => gzipSync(data, { level: constants.Z_BEST_COMPRESSION })],
];

/** Write `.br` and `.gz` files beside the assets that they shorten. */
export function compressedCopies(): Plugin {
  return {
    name: "compressed-copies",
    apply: "build",
    writeBundle({ dir = "dist" }) {
      const folder = join(dir, "assets");
      for (const name of readdirSync(folder).filter((file) => COMPRESSIBLE.test(file))) {
        const data = readFileSync(join(folder, name));
        if (data.length < LEAST_BYTES) continue;
        for (const [suffix, compress] of CODINGS)
          writeFileSync(join(folder, name + suffix), compress(data));
      }
    },
  };
}
