import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

// JSX is esbuild's own. The server proxies to coderd when developing with `npm run dev`.
export default defineConfig({
  plugins: [tailwindcss()],
  esbuild: { jsx: "automatic" },
  build: {
    outDir: "dist",
    assetsDir: "assets",
    sourcemap: false,
    target: "es2022",
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      output: {
        manualChunks: {
          vendor: [
            "react",
            "react-dom",
            "react-dom/client",
            "react-router",
            "@tanstack/react-query",
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": { target: "http://127.0.0.1:3000", ws: true },
      "^/(icon|emojis)/": "http://127.0.0.1:3000",
    },
  },
});
