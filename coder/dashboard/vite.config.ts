import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

import { chunkNames } from "./chunks";
import { compressedCopies } from "./compressed-copies";

// JSX is esbuild's own. The server proxies to coderd when developing with `npm run dev`.
export default defineConfig({
  plugins: [tailwindcss(), compressedCopies()],
  esbuild: { jsx: "automatic" },
  build: {
    outDir: "dist",
    assetsDir: "assets",
    sourcemap: false,
    target: "es2022",
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      output: { manualChunks: chunkNames() },
    },
  },
  server: {
    proxy: {
      "/api": { target: "http://127.0.0.1:3000", ws: true },
      "^/(icon|emojis)/": "http://127.0.0.1:3000",
    },
  },
});
